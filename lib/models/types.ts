// What is said of networks, and what may be chosen of one.
import type { DType } from '../tensor/dtype.js';
import type { FamilyName } from './names.js';

/** One array of a network: the key's name and its shape. */
export interface Parameter {
  /** As MXNet names it. */
  readonly name: string;
  /** Row-major. */
  readonly shape: readonly number[];
}

/** Channels, height, width. */
export type ImageShape = readonly [channels: number, height: number, width: number];

/** What may be chosen of a network. What a network does not know, it ignores, as MXNet's do. */
export interface NetworkOptions {
  /** Depth of the networks that come in several; 152 when absent, which is MXNet's default (and impossible for vgg). */
  readonly numLayers?: number;
  /** 3 x 224 x 224 when absent. */
  readonly imageShape?: ImageShape;
  /** Outputs of the classifier; 1000 when absent. */
  readonly numClasses?: number;
  /**
   * Also the BatchNorm arrays that are parameters: gamma and beta, those with a fixed gamma too, since they are keys
   * of the store all the same. Moving mean and variance are never in: they are state, not gradients.
   * When false, only arrays whose name holds `weight` or `bias`, which is what MXNet's tool counts.
   */
  readonly allParams?: boolean;
  /** Width of the mobile networks; 1 when absent. */
  readonly multiplier?: number;
}

/** A network as the store sees it: its arrays, in key order. */
export interface Network {
  /** Of its family. */
  readonly name: FamilyName;
  /** In the order of the network. */
  readonly parameters: readonly Parameter[];
  /** Sum over all arrays. */
  readonly elements: number;
  /** elements times the size of the element type (float32 when absent). */
  bytes(dtype?: DType): number;
}

/** Options with the defaults filled in. */
export interface NetworkChoice {
  readonly numLayers: number;
  readonly imageShape: ImageShape;
  readonly numClasses: number;
  readonly multiplier: number;
}

/** What there is to choose from, for `gradlink models` and for messages. */
export interface NetworkInfo {
  /** Of its family. */
  readonly name: FamilyName;
  /** In a few words. */
  readonly description: string;
  /** Depths for large images; empty when the network has one depth. */
  readonly numLayers: readonly number[];
  /** Other depths, for small images, in words; absent when there are none. */
  readonly smallImages?: string;
  /** Widths; empty when there is one. */
  readonly multipliers: readonly number[];
  /** An image that it takes, and that published sizes are for; absent when it takes no image. */
  readonly imageShape?: ImageShape;
}

/** A network of the registry: what there is to choose, and how its arrays follow from a choice. */
export interface Family extends NetworkInfo {
  /** Whether this depth exists at this image; called only for networks that have depths. */
  readonly acceptsDepth?: (choice: NetworkChoice) => boolean;
  /** Depths at this image, in words, for the message. */
  readonly describeDepths?: (choice: NetworkChoice) => string;
  /** All arrays, those of BatchNorm too, in key order. The depth and the multiplier have been checked. */
  readonly build: (choice: NetworkChoice) => readonly Parameter[];
}

/** The image that most networks are published for. */
export const standardImage = [3, 224, 224] as const;
