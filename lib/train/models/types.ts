// A network to train: a tfjs-layers model with its loss and input shape.
import type * as Core from '@tensorflow/tfjs-core';
import type * as Layers from '@tensorflow/tfjs-layers';

/** The parts of TensorFlow.js that models need, loaded by the caller: gradlink imports none of them. */
export interface Tf {
  /** `@tensorflow/tfjs-core`. */
  readonly core: typeof Core;
  /** `@tensorflow/tfjs-layers`. */
  readonly layers: typeof Layers;
}

/** Height, width and channels of an image, or the length of a token sequence. */
export type SampleShape = readonly number[];

/** Options of {@link buildModel}. */
export interface ModelOptions {
  /** Without the batch; the network's default when absent: [32, 32, 3] for most. */
  readonly inputShape?: SampleShape | undefined;
  /** 10 when absent, 2 for bert-tiny. */
  readonly classes?: number | undefined;
  /** For token networks, the number of tokens; the network's default when absent: 30,522 for bert-tiny. */
  readonly vocabulary?: number | undefined;
  /** Seed of the initial weights. 0 when absent. */
  readonly seed?: number | undefined;
}

/** A network before it is built. */
export interface ModelKind {
  /** A short description. */
  readonly description: string;
  /** Of one sample. */
  readonly inputShape: SampleShape;
  /** Labels are below this. */
  readonly classes: number;
  /** int32 for tokens below `vocabulary`. */
  readonly inputType: 'float32' | 'int32';
  /** For text models: tokens are below this. */
  readonly vocabulary?: number;
  /** The name of a sample in reports. */
  readonly sampleName: 'img' | 'sentence';
  /** Undefined if the shape is supported; otherwise the supported ones. */
  wrongShape(shape: SampleShape): string | undefined;
  /** Builds the model with weights from a seed. */
  build(
    maker: LayerMaker,
    shape: SampleShape,
    classes: number,
    vocabulary: number,
  ): Layers.LayersModel;
}

/** Makes layers whose initial weights follow from one seed. */
export class LayerMaker {
  /** tfjs's layers. */
  readonly layers: typeof Layers.layers;
  #next: number;

  constructor(
    /** The packages to build with. */
    readonly tf: Tf,
    seed: number,
  ) {
    this.layers = tf.layers.layers;
    // Far apart, so that seeds 0 and 1 share no layer's numbers.
    this.#next = seed * 10_000 + 1;
  }

  /** An input of the model. */
  input(shape: SampleShape, dtype: 'float32' | 'int32' = 'float32'): Layers.SymbolicTensor {
    return this.tf.layers.input({ shape: [...shape], dtype });
  }

  /** The model from its inputs and outputs. */
  model(inputs: Layers.SymbolicTensor, outputs: Layers.SymbolicTensor): Layers.LayersModel {
    return this.tf.layers.model({ inputs, outputs });
  }

  #seed(): number {
    return this.#next++;
  }

  /** An initializer with its own seed. */
  glorot(): ReturnType<typeof Layers.initializers.glorotUniform> {
    return this.tf.layers.initializers.glorotUniform({ seed: this.#seed() });
  }

  /** An initializer with its own seed. */
  he(): ReturnType<typeof Layers.initializers.heNormal> {
    return this.tf.layers.initializers.heNormal({ seed: this.#seed() });
  }

  /** An initializer with its own seed. */
  normal(stddev: number): ReturnType<typeof Layers.initializers.truncatedNormal> {
    return this.tf.layers.initializers.truncatedNormal({ stddev, seed: this.#seed() });
  }
}

/** The single output of a layer with one input. */
export function apply(
  layer: Layers.layers.Layer,
  input: Layers.SymbolicTensor,
): Layers.SymbolicTensor {
  return layer.apply(input) as Layers.SymbolicTensor;
}

/** The single output of a layer with several inputs. */
export function join(
  layer: Layers.layers.Layer,
  inputs: Layers.SymbolicTensor[],
): Layers.SymbolicTensor {
  return layer.apply(inputs) as Layers.SymbolicTensor;
}

/** Images of at least `least` pixels a side. */
export function imagesOf(least: number): ModelKind['wrongShape'] {
  return (shape) => {
    const [height = 0, width = 0, channels = 0] = shape;
    const right = shape.length === 3 && height >= least && width >= least && channels >= 1;
    return right ? undefined : `height, width and channels, at least ${least} pixels a side`;
  };
}
