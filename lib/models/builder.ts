import type { ImageShape, Parameter } from './types.js';

/** A feature map between layers. */
export interface Tensor {
  readonly channels: number;
  readonly height: number;
  readonly width: number;
}

/** One number for both directions, or height and width. */
export type Extent = number | readonly [height: number, width: number];

export interface ConvOptions {
  /** The layer's name; its arrays are `NAME_weight` and `NAME_bias`. Numbered as in MXNet when absent. */
  readonly name?: string;
  readonly filters: number;
  /** Window; 1 when absent. */
  readonly kernel?: Extent;
  readonly stride?: number;
  readonly pad?: Extent;
  readonly groups?: number;
}

/** A window that does not fit into its map; {@link network} turns it into advice. */
export class ImpossibleShape extends Error {}

/**
 * Propagates shapes through a network and records each layer's arrays in call order. Families call in the order of
 * MXNet's argument list (a walk from the output, inputs first, left to right), so that array k here is key k there.
 */
export class Builder {
  readonly parameters: Parameter[] = [];
  readonly #bias: boolean;
  readonly #counters = new Map<string, number>();

  /** @param bias whether convolutions have a bias; fully connected layers always do */
  constructor({ bias }: { bias: boolean }) {
    this.#bias = bias;
  }

  input([channels, height, width]: ImageShape): Tensor {
    return { channels, height, width };
  }

  conv(input: Tensor, options: ConvOptions): Tensor {
    const { filters, kernel = 1, stride = 1, pad = 0, groups = 1 } = options;
    const name = options.name ?? this.#number('convolution');
    const [kernelHeight, kernelWidth] = pair(kernel);
    const output = window(input, kernel, stride, pad, name);
    this.#add(`${name}_weight`, [filters, input.channels / groups, kernelHeight, kernelWidth]);
    if (this.#bias) this.#add(`${name}_bias`, [filters]);
    return { ...output, channels: filters };
  }

  /** Gamma and beta of each channel. */
  batchNorm(input: Tensor, name = this.#number('batchnorm')): Tensor {
    this.#add(`${name}_gamma`, [input.channels]);
    this.#add(`${name}_beta`, [input.channels]);
    return input;
  }

  /** Rounds down, as MXNet's default does. */
  pool(input: Tensor, kernel: Extent, stride = 1, pad: Extent = 0): Tensor {
    const [height, width] = pair(kernel);
    return window(input, kernel, stride, pad, `${height}x${width} pooling`);
  }

  globalPool(input: Tensor): Tensor {
    return { channels: input.channels, height: 1, width: 1 };
  }

  /** Concatenates maps along their channels; the first one gives the size. */
  concat(first: Tensor, ...others: readonly Tensor[]): Tensor {
    const channels = others.reduce((sum, { channels }) => sum + channels, first.channels);
    return { ...first, channels };
  }

  fullyConnected(input: Tensor, units: number, name = this.#number('fullyconnected')): Tensor {
    this.#add(`${name}_weight`, [units, input.channels * input.height * input.width]);
    this.#add(`${name}_bias`, [units]);
    return { channels: units, height: 1, width: 1 };
  }

  #add(name: string, shape: readonly number[]): void {
    this.parameters.push({ name, shape });
  }

  /** MXNet's automatic names: kind and a counter from 0. */
  #number(kind: string): string {
    const count = this.#counters.get(kind) ?? 0;
    this.#counters.set(kind, count + 1);
    return `${kind}${count}`;
  }
}

function window(input: Tensor, kernel: Extent, stride: number, pad: Extent, what: string): Tensor {
  const [kernelHeight, kernelWidth] = pair(kernel);
  const [padHeight, padWidth] = pair(pad);
  const height = Math.floor((input.height + 2 * padHeight - kernelHeight) / stride) + 1;
  const width = Math.floor((input.width + 2 * padWidth - kernelWidth) / stride) + 1;
  if (height < 1 || width < 1) {
    throw new ImpossibleShape(`${what} does not fit into a ${input.height}x${input.width} map`);
  }
  return { channels: input.channels, height, width };
}

function pair(extent: Extent): readonly [number, number] {
  return typeof extent === 'number' ? [extent, extent] : extent;
}
