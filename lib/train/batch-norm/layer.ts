// TensorFlow.js' own layer, except in training, where its statistics are those of all ranks' batches.
import type { Tensor } from '@tensorflow/tfjs-core';
import type * as Layers from '@tensorflow/tfjs-layers';

import type { Communicator } from '../../communicator/communicator.js';
import { GradlinkError } from '../../errors.js';
import { anObject, milliseconds } from '../../checks.js';
import { assertRankOnHost } from '../ranks.js';
import { layers, tf } from '../tfjs.js';
import { normalized } from './normalized.js';

/** Arguments of {@link SyncBatchNormalization}: those of `tf.layers.batchNormalization`, and the ranks. */
export type SyncBatchNormalizationArgs = NonNullable<
  Parameters<typeof Layers.layers.batchNormalization>[0]
> & {
  /** The ranks that train together; {@link SyncBatchNormalization.use} may name them later. */
  readonly communicator?: Communicator | undefined;
  /** Of each collective, in milliseconds; the communicator's own when absent. */
  readonly timeoutMs?: number | undefined;
};

/** The part of TensorFlow.js' layer that is used; its types keep it private. */
interface BatchNormalization extends Layers.layers.Layer {
  /** Of the channels. */
  readonly axis: number;
  /** Of the moving mean and variance. */
  readonly momentum: number;
  /** Added to the variance. */
  readonly epsilon: number;
  /** The learned scale, where there is one. */
  readonly gamma?: Layers.LayerVariable;
  /** The learned shift, where there is one. */
  readonly beta?: Layers.LayerVariable;
  /** What evaluation subtracts. */
  readonly movingMean: Layers.LayerVariable;
  /** What evaluation divides by, its root. */
  readonly movingVariance: Layers.LayerVariable;
}

// The class itself is not exported. Named, so that this one counts for nobody's default names.
const Base = layers.layers.batchNormalization({ name: 'gradlink' }).constructor as unknown as new (
  args: object,
) => BatchNormalization;

/**
 * Batch normalisation whose statistics in training are those of the batches of all ranks, as if one had them all; its
 * gradients likewise. Where `training` is not set it is `tf.layers.batchNormalization`, whose weights, arguments and
 * moving averages (of the biased variance) it has.
 *
 * Both directions of each layer are one blocking all-reduce: every rank calls the layer in every pass, alike, on a thread
 * of its own. Beside {@link DistributedDataParallel} give it a communicator of its own, `await comm.split(0)`. A model
 * that is loaded has none: see {@link SyncBatchNormalization.use}.
 */
export class SyncBatchNormalization extends Base {
  /** As tfjs registers it. */
  static readonly className = 'SyncBatchNormalization';
  #comm: Communicator | undefined;
  #timeoutMs: number;

  constructor(args: SyncBatchNormalizationArgs = {}) {
    anObject(args, 'args');
    const { communicator, timeoutMs, ...rest } = args;
    super(rest);
    if (communicator !== undefined) assertRankOnHost(communicator, 'communicator');
    this.#comm = communicator;
    this.#timeoutMs = milliseconds(timeoutMs, 'timeoutMs', -1);
  }

  /** The ranks whose batches count; undefined before they are named. */
  get communicator(): Communicator | undefined {
    return this.#comm;
  }

  /** Names the ranks whose batches count from now on. */
  use(communicator: Communicator): void {
    assertRankOnHost(communicator, 'communicator');
    this.#comm = communicator;
  }

  override call(
    inputs: Tensor | Tensor[],
    kwargs: Parameters<Layers.layers.Layer['call']>[1],
  ): Tensor | Tensor[] {
    if (kwargs['training'] !== true) return super.call(inputs, kwargs);
    const comm = this.#comm;
    if (comm === undefined) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        `layer ${this.name}: expected the ranks that train together, got none; name them with layer.use(comm), or for a ` +
          'whole model with useSyncBatchNormalization(model, comm)',
        { usable: true },
      );
    }
    return tf.tidy(() => {
      const x = (Array.isArray(inputs) ? inputs[0] : inputs)!;
      const axis = this.axis < 0 ? this.axis + x.rank : this.axis;
      const channels = x.shape[axis]!;
      const { value, mean, variance } = normalized(
        x,
        this.gamma?.read() ?? tf.ones([channels]),
        this.beta?.read() ?? tf.zeros([channels]),
        {
          axis,
          epsilon: this.epsilon,
          sum: (own) =>
            comm.allReduceSync(own, this.#timeoutMs < 0 ? {} : { timeoutMs: this.#timeoutMs }),
        },
      );
      this.#follow(this.movingMean, mean);
      this.#follow(this.movingVariance, variance);
      return value;
    });
  }

  #follow(average: Layers.LayerVariable, seen: Float32Array): void {
    const before = average.read();
    const change = tf.mul(tf.sub(before, tf.tensor1d(seen)), 1 - this.momentum);
    average.write(tf.sub(before, change));
  }
}

tf.serialization.registerClass(SyncBatchNormalization as never);
