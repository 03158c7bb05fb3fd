// What a network that is trained here is: a tfjs-layers model, its loss, and what it takes.
import type * as Core from '@tensorflow/tfjs-core';
import type * as Layers from '@tensorflow/tfjs-layers';

/** The parts of TensorFlow.js that models are built of, loaded by the caller: gradlink itself imports none of them. */
export interface Tf {
  /** `@tensorflow/tfjs-core`. */
  readonly core: typeof Core;
  /** `@tensorflow/tfjs-layers`. */
  readonly layers: typeof Layers;
}

/** Height, width and channels of an image; the length of a sequence of tokens. */
export type SampleShape = readonly number[];

/** Options of {@link buildModel}. */
export interface ModelOptions {
  /** Without the batch; the network's own when absent: [32, 32, 3] for most. */
  readonly inputShape?: SampleShape | undefined;
  /** 10 when absent, 2 for bert-tiny. */
  readonly classes?: number | undefined;
  /** Of networks that take tokens: each is below it; the network's own, 30,522 for bert-tiny, when absent. */
  readonly vocabulary?: number | undefined;
  /** Of the initial weights: the same seed gives the same model. 0 when absent. */
  readonly seed?: number | undefined;
}

/** A network before it is built. */
export interface ModelKind {
  /** In a few words. */
  readonly description: string;
  /** Of one sample. */
  readonly inputShape: SampleShape;
  /** Labels are below this. */
  readonly classes: number;
  /** int32: tokens, each below `vocabulary`. */
  readonly inputType: 'float32' | 'int32';
  /** Tokens are below this; of models of text. */
  readonly vocabulary?: number;
  /** What a sample is called in a report. */
  readonly sampleName: 'img' | 'sentence';
  /** Whether the shape can be an input; says what would be right where not. */
  wrongShape(shape: SampleShape): string | undefined;
  /** Makes the model with weights of a seed. */
  build(
    maker: LayerMaker,
    shape: SampleShape,
    classes: number,
    vocabulary: number,
  ): Layers.LayersModel;
}

/** Makes layers whose initial weights follow from one seed. */
export class LayerMaker {
  /** tfjs's own. */
  readonly layers: typeof Layers.layers;
  #next: number;

  constructor(
    /** The packages that it builds with. */
    readonly tf: Tf,
    seed: number,
  ) {
    this.layers = tf.layers.layers;
    // Far apart, so that seeds 0 and 1 share no layer's numbers.
    this.#next = seed * 10_000 + 1;
  }

  /** Where samples go in. */
  input(shape: SampleShape, dtype: 'float32' | 'int32' = 'float32'): Layers.SymbolicTensor {
    return this.tf.layers.input({ shape: [...shape], dtype });
  }

  /** From its ends. */
  model(inputs: Layers.SymbolicTensor, outputs: Layers.SymbolicTensor): Layers.LayersModel {
    return this.tf.layers.model({ inputs, outputs });
  }

  #seed(): number {
    return this.#next++;
  }

  /** An initializer, each with a seed of its own. */
  glorot(): ReturnType<typeof Layers.initializers.glorotUniform> {
    return this.tf.layers.initializers.glorotUniform({ seed: this.#seed() });
  }

  /** An initializer, each with a seed of its own. */
  he(): ReturnType<typeof Layers.initializers.heNormal> {
    return this.tf.layers.initializers.heNormal({ seed: this.#seed() });
  }

  /** An initializer, each with a seed of its own. */
  normal(stddev: number): ReturnType<typeof Layers.initializers.truncatedNormal> {
    return this.tf.layers.initializers.truncatedNormal({ stddev, seed: this.#seed() });
  }
}

/** The one tensor that a layer of one input gives. */
export function apply(
  layer: Layers.layers.Layer,
  input: Layers.SymbolicTensor,
): Layers.SymbolicTensor {
  return layer.apply(input) as Layers.SymbolicTensor;
}

/** The one tensor that a layer of several inputs gives. */
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
