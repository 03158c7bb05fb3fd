// Transformer layers that tfjs-layers lacks, from operations with gradients on every backend: its own attention needs
// einsum, which wasm lacks.
import type * as Core from '@tensorflow/tfjs-core';
import type * as Layers from '@tensorflow/tfjs-layers';

import type { Tf } from './types.js';

export interface AttentionLayers {
  /** Softmax of queries and keys, times values: [batch, length, width] each, the width split among `heads`. */
  readonly attention: (heads: number) => Layers.layers.Layer;
  /** Adds learned embeddings of each position (at most `positions`) and of the first of two segments. */
  readonly places: (positions: number, initializer: Initializer) => Layers.layers.Layer;
  /** [batch, length, width] to [batch, width]. */
  readonly firstToken: () => Layers.layers.Layer;
}

type Initializer = ReturnType<typeof Layers.initializers.truncatedNormal>;
type Shapes = Parameters<Layers.layers.Layer['computeOutputShape']>[0];

const made = new WeakMap<object, AttentionLayers>();

/** The layers for this instance of tfjs-layers, which can save and load models with them from then on. */
export function attentionLayers(tf: Tf): AttentionLayers {
  const known = made.get(tf.layers);
  if (known !== undefined) return known;
  const create = define(tf);
  made.set(tf.layers, create);
  return create;
}

function define({ core, layers }: Tf): AttentionLayers {
  const firstShape = (shapes: Shapes): Shapes => {
    const [first] = shapes;
    return Array.isArray(first) ? first : shapes;
  };

  class Attention extends layers.layers.Layer {
    static readonly className = 'GradlinkAttention';
    readonly #heads: number;

    constructor(config: { readonly heads: number; readonly name?: string }) {
      super({ ...(config.name === undefined ? {} : { name: config.name }) });
      this.#heads = config.heads;
    }

    override computeOutputShape(shapes: Shapes): Shapes {
      return firstShape(shapes);
    }

    override call(inputs: Core.Tensor | Core.Tensor[]): Core.Tensor {
      return core.tidy(() => {
        const [queries, keys, values] = inputs as [Core.Tensor, Core.Tensor, Core.Tensor];
        const [batch = 1, length = 1, width = 1] = queries.shape;
        const depth = width / this.#heads;
        const split = (x: Core.Tensor): Core.Tensor =>
          core.transpose(core.reshape(x, [batch, length, this.#heads, depth]), [0, 2, 1, 3]);
        const scores = core.matMul(split(queries), split(keys), false, true);
        const weights = core.softmax(core.mul(scores, 1 / Math.sqrt(depth)));
        const mixed = core.transpose(core.matMul(weights, split(values)), [0, 2, 1, 3]);
        return core.reshape(mixed, [batch, length, width]);
      });
    }

    override getConfig(): Core.serialization.ConfigDict {
      return { ...super.getConfig(), heads: this.#heads };
    }
  }

  class Places extends layers.layers.Layer {
    static readonly className = 'GradlinkPlaces';
    readonly #positions: number;
    readonly #initializer: Initializer;
    #position: Layers.LayerVariable | undefined;
    #segment: Layers.LayerVariable | undefined;

    constructor(config: {
      readonly positions: number;
      readonly initializer?: Initializer;
      readonly name?: string;
    }) {
      super({ ...(config.name === undefined ? {} : { name: config.name }) });
      this.#positions = config.positions;
      this.#initializer = config.initializer ?? layers.initializers.truncatedNormal({});
    }

    override build(shape: Shapes): void {
      const width = Number(shape.at(-1));
      const add = (name: string, rows: number): Layers.LayerVariable =>
        this.addWeight(name, [rows, width], 'float32', this.#initializer);
      this.#position = add('positions', this.#positions);
      this.#segment = add('segments', 2);
      this.built = true;
    }

    override computeOutputShape(shapes: Shapes): Shapes {
      return firstShape(shapes);
    }

    override call(inputs: Core.Tensor | Core.Tensor[]): Core.Tensor {
      return core.tidy(() => {
        const x = (Array.isArray(inputs) ? inputs[0] : inputs)!;
        const [, length = 1, width = 1] = x.shape;
        const rows = (from: Layers.LayerVariable | undefined, count: number): Core.Tensor =>
          core.slice(from!.read(), [0, 0], [count, width]);
        return core.add(core.add(x, rows(this.#position, length)), rows(this.#segment, 1));
      });
    }

    override getConfig(): Core.serialization.ConfigDict {
      return { ...super.getConfig(), positions: this.#positions };
    }
  }

  class FirstToken extends layers.layers.Layer {
    static readonly className = 'GradlinkFirstToken';

    override computeOutputShape(shapes: Shapes): Shapes {
      return [shapes[0] as number, shapes[2] as number];
    }

    override call(inputs: Core.Tensor | Core.Tensor[]): Core.Tensor {
      return core.tidy(() => {
        const x = (Array.isArray(inputs) ? inputs[0] : inputs)!;
        const [batch = 1, , width = 1] = x.shape;
        return core.reshape(core.slice(x, [0, 0, 0], [batch, 1, width]), [batch, width]);
      });
    }
  }

  core.serialization.registerClass(Attention);
  core.serialization.registerClass(Places);
  core.serialization.registerClass(FirstToken);
  return {
    attention: (heads) => new Attention({ heads }),
    places: (positions, initializer) => new Places({ positions, initializer }),
    firstToken: () => new FirstToken({}),
  };
}
