// TensorFlow.js' own layer, except that training uses statistics of all ranks' batches.
import type { Tensor } from '@tensorflow/tfjs-core';
import type * as Layers from '@tensorflow/tfjs-layers';

import type { Communicator } from '../../communicator/communicator.js';
import { GradlinkError } from '../../errors.js';
import { anObject, milliseconds } from '../../checks.js';
import { assertRankOnHost } from '../ranks.js';
import { layers, tf } from '../tfjs.js';
import { normalized } from './normalized.js';

/** Arguments of {@link SyncBatchNormalization}: those of `tf.layers.batchNormalization` and the ranks. */
export type SyncBatchNormalizationArgs = NonNullable<
  Parameters<typeof Layers.layers.batchNormalization>[0]
> & {
  /** The ranks that train together; {@link SyncBatchNormalization.use} can set them later. */
  readonly communicator?: Communicator | undefined;
  /** Milliseconds of each collective; the communicator's default when absent. */
  readonly timeoutMs?: number | undefined;
};

/** The used members of TensorFlow.js' layer, which its types keep private. */
interface BatchNormalization extends Layers.layers.Layer {
  /** The channel dimension. */
  readonly axis: number;
  /** Momentum of the moving mean and variance. */
  readonly momentum: number;
  /** Added to the variance. */
  readonly epsilon: number;
  /** The learned scale, if any. */
  readonly gamma?: Layers.LayerVariable;
  /** The learned shift, if any. */
  readonly beta?: Layers.LayerVariable;
  /** The mean for evaluation. */
  readonly movingMean: Layers.LayerVariable;
  /** The variance for evaluation. */
  readonly movingVariance: Layers.LayerVariable;
}

// The class itself is not exported. Named, so that this instance does not affect default names.
const Base = layers.layers.batchNormalization({ name: 'gradlink' }).constructor as unknown as new (
  args: object,
) => BatchNormalization;

/**
 * Batch normalisation with statistics and gradients over the batches of all ranks in training. Otherwise it equals
 * `tf.layers.batchNormalization`, with the same weights, arguments and moving averages (of the biased variance).
 *
 * Each layer needs a blocking all-reduce per direction: every rank, each on its own thread, calls it in every pass.
 * With {@link DistributedDataParallel} use a separate communicator, `await comm.split(0)`. A loaded model has none: see
 * {@link SyncBatchNormalization.use}.
 */
export class SyncBatchNormalization extends Base {
  /** tfjs's registration name. */
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

  /** The ranks whose batches count, if set. */
  get communicator(): Communicator | undefined {
    return this.#comm;
  }

  /** Sets the ranks whose batches count from now on. */
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
