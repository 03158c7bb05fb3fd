// The types of networks and their options.
import type { DType } from '../tensor/dtype.js';
import type { FamilyName } from './names.js';

/** One array of a network: the key's name and its shape. */
export interface Parameter {
  /** MXNet's name. */
  readonly name: string;
  /** Dimensions, row-major. */
  readonly shape: readonly number[];
}

/** Channels, height, width. */
export type ImageShape = readonly [channels: number, height: number, width: number];

/** Options of a network. A network ignores options that do not apply, as MXNet's do. */
export interface NetworkOptions {
  /** Depth, for networks with several; 152 when absent, MXNet's default (invalid for vgg). */
  readonly numLayers?: number;
  /** 3 x 224 x 224 when absent. */
  readonly imageShape?: ImageShape;
  /** Outputs of the classifier; 1000 when absent. */
  readonly numClasses?: number;
  /**
   * Includes BatchNorm's gamma and beta, even with a fixed gamma, because they are keys of the store. Moving mean and
   * variance are never included: they are state, not gradients. False: only arrays with `weight` or `bias` in their
   * name, as MXNet's tool counts.
   */
  readonly allParams?: boolean;
  /** Width of the mobile networks; 1 when absent. */
  readonly multiplier?: number;
}

/** A network for a store: its arrays in key order. */
export interface Network {
  /** Its family. */
  readonly name: FamilyName;
  /** In network order. */
  readonly parameters: readonly Parameter[];
  /** Sum over all arrays. */
  readonly elements: number;
  /** elements times the size of the element type (float32 when absent). */
  bytes(dtype?: DType): number;
}

/** Options with defaults filled in. */
export interface NetworkChoice {
  readonly numLayers: number;
  readonly imageShape: ImageShape;
  readonly numClasses: number;
  readonly multiplier: number;
}

/** The possible options, for `gradlink models` and messages. */
export interface NetworkInfo {
  /** Its family. */
  readonly name: FamilyName;
  /** A short description. */
  readonly description: string;
  /** Depths for large images; empty for a single depth. */
  readonly numLayers: readonly number[];
  /** Other depths for small images, as text; absent if there are none. */
  readonly smallImages?: string;
  /** Widths; empty for a single one. */
  readonly multipliers: readonly number[];
  /** The input image with published sizes; absent for other inputs. */
  readonly imageShape?: ImageShape;
}

/** A registered network: its options, and how to build its arrays. */
export interface Family extends NetworkInfo {
  /** Whether this depth exists for this image; only for networks with several depths. */
  readonly acceptsDepth?: (choice: NetworkChoice) => boolean;
  /** Depths for this image as text, for the message. */
  readonly describeDepths?: (choice: NetworkChoice) => string;
  /** All arrays including BatchNorm's, in key order. Depth and multiplier are valid. */
  readonly build: (choice: NetworkChoice) => readonly Parameter[];
}

/** The usual image of published networks. */
export const standardImage = [3, 224, 224] as const;
