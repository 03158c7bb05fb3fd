import type { NetworkChoice, NetworkInfo, Parameter } from './types.js';

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
