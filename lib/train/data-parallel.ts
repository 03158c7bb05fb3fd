// Data-parallel training of one model: each rank has its batch, and gradients are averaged in buckets during the
// backward pass.
import type { Scalar, Tensor, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';

import type { Communicator } from '../communicator/communicator.js';
import { failForAll, refuse } from '../communicator/composed/agreement.js';
import { GradlinkError, argumentError, ruleError } from '../errors.js';
import {
  aBoolean,
  aFunction,
  having,
  notConstructed,
  optionNames,
  optionsObject,
  orAbsent,
} from '../checks.js';
import { syncLayersOf } from './batch-norm/models.js';
import { broadcastVariables } from './broadcast.js';
import { GradientReducer } from './buckets/reducer.js';
import type { BucketPlan, BucketTimes } from './buckets/types.js';
import type { NamedArray } from './checkpoints/types.js';
import { reducedTensors } from './gradient-gather.js';
import { endPass, runPass, sinkOf } from './gradient-pass.js';
import { setStateArrays, stateArrays } from './optimizer-arrays.js';
import { assertRankOnHost } from './ranks.js';
import { Shards } from './shards.js';
import { tf } from './tfjs.js';
import type {
  DataParallelOptions,
  GradientOptions,
  Gradients,
  InnerOptimizer,
  JoinTrainingOptions,
  PassTimes,
  Trainable,
} from './types.js';
import { specsOf, trainableVariables } from './variables.js';

const parallelNames = optionNames<DataParallelOptions>({
  mode: true,
  bucketCapBytes: true,
  firstBucketBytes: true,
  rebuild: true,
  buckets: true,
  op: true,
  hook: true,
  timeoutMs: true,
  findUnused: true,
  gather: true,
  uneven: true,
  shard: true,
  broadcast: true,
  timeline: true,
});
const gradientNames = optionNames<GradientOptions>({ samples: true });
const joinNames = optionNames<JoinTrainingOptions>({ optimizer: true });

/** Known only to create(). */
const making = Symbol('create');
const applies = having({ applyGradients: aFunction });
const optionKinds = having({ shard: orAbsent(aBoolean) });

/** The used members of an optimizer. */
type Stepping = Pick<InnerOptimizer, 'applyGradients'>;

/**
 * Trains the same model on every rank, each with its own batch, as if one rank had all batches. Gradients are averaged
 * in buckets during the backward pass.
 *
 * All ranks make the same calls. Each rank has its own optimizer; with equal gradients, all variables stay equal.
 *
 * @example
 * ```ts
 * await using comm = await Communicator.world();
 * await useBackend();
 * const ddp = await DistributedDataParallel.create(model, comm);
 * const optimizer = tf.train.adam();
 * for (const { x, y } of batches) {
 *   const loss = await ddp.step(optimizer, () => tf.losses.softmaxCrossEntropy(y, model.predict(x)));
 *   loss.dispose();
 * }
 * ```
 */
export class DistributedDataParallel {
  /** The trained variables, in the same order on every rank. */
  readonly variables: readonly Variable[];
  readonly #model: Trainable;
  readonly #comm: Communicator;
  readonly #reducer: GradientReducer;
  readonly #shards: Shards;
  readonly #options: DataParallelOptions;
  #times: PassTimes | undefined;
  #bucketTimes: readonly BucketTimes[] = [];
  #syncing = true;
  #busy = false;

  private constructor(
    key: typeof making,
    model: Trainable,
    variables: readonly Variable[],
    comm: Communicator,
    options: DataParallelOptions,
  ) {
    if (key !== making) {
      throw notConstructed('DistributedDataParallel', 'DistributedDataParallel.create(…)');
    }
    this.#model = model;
    this.variables = variables;
    this.#comm = comm;
    this.#options = options;
    const { mode, bucketCapBytes, firstBucketBytes, buckets, op, hook, timeoutMs } = options;
    const { shard = false, gather } = options;
    this.#reducer = new GradientReducer(comm, specsOf(variables), {
      mode,
      bucketCapBytes,
      firstBucketBytes,
      // A rank's part, and its state, follow from the buckets.
      rebuild: shard ? false : options.rebuild,
      buckets,
      op,
      hook,
      timeoutMs,
    });
    this.#shards = new Shards(variables, comm, {
      buckets: shard ? this.#reducer.buckets : undefined,
      gather,
      calls: this.#calls(),
    });
  }

  /**
   * Collective. Copies rank 0's values to all ranks and assigns buckets.
   *
   * @param model - a `tf.LayersModel`, or variables; the same on every rank, in the same order.
   * @throws GradlinkError ERR_MISMATCH if the ranks' variables differ in number or size.
   */
  static async create(
    model: Trainable,
    comm: Communicator,
    options?: DataParallelOptions,
  ): Promise<DistributedDataParallel> {
    assertRankOnHost(comm, 'comm');
    let ddp: DistributedDataParallel;
    try {
      const given = optionsObject(options, parallelNames, 'DistributedDataParallel');
      optionKinds(given, 'options');
      if (given.shard === true && given.rebuild === true) {
        const why = 'a rank updates its part of each bucket, so buckets must not change';
        throw ruleError('ERR_INVALID_ARG_VALUE', `shard cannot be combined with rebuild: ${why}`);
      }
      if (given.shard === true && comm.joinable) {
        const why = 'no rank would update the part of one that has joined; use uneven instead';
        throw ruleError(
          'ERR_INVALID_ARG_VALUE',
          `shard needs a communicator that is not joinable: ${why}`,
        );
      }
      ddp = new DistributedDataParallel(making, model, modelOf(model, given), comm, given);
    } catch (cause) {
      if (options?.broadcast ?? true) await refuse(comm, cause, {});
      throw cause;
    }
    if (options?.broadcast ?? true) await broadcastVariables(model, comm, ddp.#calls());
    return ddp;
  }

  /** The variables of each bucket, in order of reduction. */
  get buckets(): readonly BucketPlan[] {
    return this.#reducer.plan;
  }

  /** The times of the last pass; undefined before the first. */
  get times(): PassTimes | undefined {
    return this.#times;
  }

  /** The bucket times of the last pass. */
  get bucketTimes(): readonly BucketTimes[] {
    return this.#bucketTimes;
  }

  /**
   * Gradients of `loss`, averaged over the ranks.
   *
   * @param loss - this rank's loss from its own batch, as for `tf.variableGrads`.
   * @throws GradlinkError as a collective does, mainly ERR_PEER_LOST. If `loss`, its gradient or the arguments fail on
   *   one rank alone, the communicator is aborted: the others get ERR_ABORTED with the reason.
   */
  async gradients(loss: () => Scalar, options?: GradientOptions): Promise<Gradients> {
    const { value, tensors } = await this.#run(loss, options);
    return { value, gradients: tensors };
  }

  /**
   * Runs {@link gradients} and applies all of them, or those of this rank's part (`shard`). Inside {@link noSync}
   * nothing is applied.
   *
   * @returns this rank's own loss; the caller disposes it.
   */
  async step(
    optimizer: Pick<InnerOptimizer, 'applyGradients'>,
    loss: () => Scalar,
    options?: GradientOptions,
  ): Promise<Scalar> {
    const { value } = await this.#run(loss, options, { optimizer });
    return value;
  }

  #check(optimizer: Stepping): void {
    applies(optimizer, 'optimizer');
    this.#shards.assertFits(optimizer);
  }

  /** Updates this rank's part, then exchanges the parts. */
  async #apply(optimizer: Stepping, used: Uint8Array | undefined): Promise<void> {
    const { timeline } = this.#options;
    const shards = this.#shards;
    const targets = shards.targets();
    try {
      const tensors = shards.areSeveral
        ? unusedLeftOut(shards.gradients(targets), (at) => used?.[shards.own[at]!.index] === 0)
        : this.#gather(used, false);
      shards.hold(optimizer);
      const step = (): void => {
        optimizer.applyGradients(tensors);
      };
      if (timeline === undefined) step();
      else timeline.span('compute', 'apply', step);
      tf.dispose(tensors.map(({ tensor }) => tensor));
      if (!shards.areSeveral) return;
      const spread = (): Promise<void> => shards.spread(targets);
      await (timeline === undefined ? spread() : timeline.span('communication', 'values', spread));
    } finally {
      shards.release(targets);
    }
  }

  /**
   * Collective. The optimizer's step count and state as arrays for {@link saveCheckpoint}. They are the same on every
   * rank, independent of sharding and the number of ranks. Rates and other settings are not included.
   *
   * @throws GradlinkError ERR_UNSUPPORTED for an optimizer with other state than those of `tf.train`; ERR_MISMATCH if
   *   classes or step counts differ between ranks.
   */
  async optimizerState(optimizer: InnerOptimizer): Promise<NamedArray[]> {
    this.#assertIdle();
    this.#busy = true;
    try {
      return await stateArrays(optimizer, this.variables, this.#shards, this.#comm, this.#calls());
    } finally {
      this.#busy = false;
    }
  }

  /**
   * Restores an optimizer from {@link optimizerState}, using this rank's part. Other arrays, such as the model's, are
   * ignored.
   *
   * @throws GradlinkError ERR_MISMATCH for the state of another class or other variables, before any change.
   */
  setOptimizerState(optimizer: InnerOptimizer, arrays: readonly NamedArray[]): void {
    this.#assertIdle();
    setStateArrays(optimizer, this.variables, this.#shards.own, arrays);
    this.#shards.hold(optimizer);
  }

  /**
   * Passes inside `body` only accumulate gradients on each rank; the next pass outside averages the sum. For batches
   * too large for one pass.
   */
  async noSync<T>(body: () => T | Promise<T>): Promise<T> {
    aFunction(body, 'body');
    const before = this.#syncing;
    this.#syncing = false;
    try {
      return await body();
    } finally {
      this.#syncing = before;
    }
  }

  /**
   * Collective, for ranks that run out of data at different times (`uneven`): takes part in the others' passes without
   * gradients until all ranks have joined. Then every rank gets the values of the last one, including untrained
   * variables.
   *
   * @returns the rank that joined last; the highest of several.
   * @throws GradlinkError ERR_UNSUPPORTED without `uneven`; else as a collective does, mainly ERR_PEER_LOST.
   */
  async join(options?: JoinTrainingOptions): Promise<number> {
    const { optimizer } = optionsObject(options, joinNames, 'join');
    if (optimizer !== undefined) this.#check(optimizer);
    this.#assertIdle();
    const { findUnused = false, uneven = false } = this.#options;
    if (!uneven) throw unsupported('join() needs the option uneven, on every rank');
    if (optimizer === undefined && this.#shards.areSeveral) {
      const why = 'this rank updates its part for the others until all have joined';
      throw ruleError('ERR_INVALID_ARG_VALUE', `join() needs an optimizer with shard: ${why}`);
    }
    this.#busy = true;
    try {
      let used: Promise<Uint8Array> | undefined;
      const last = await this.#reducer.join({
        before: () => {
          // Awaited after the reduction, as on the other ranks.
          used = findUnused ? this.#anyUses(new Uint8Array(this.variables.length)) : undefined;
          used?.catch(() => undefined);
        },
        part: this.#shards.areSeveral,
        after: async () => {
          const seen = await used;
          if (optimizer !== undefined) await this.#apply(optimizer, seen);
        },
      });
      await broadcastVariables(this.#model, this.#comm, { root: last, ...this.#calls() });
      return last;
    } finally {
      this.#busy = false;
    }
  }

  async #run(
    loss: () => Scalar,
    options: GradientOptions | undefined,
    step?: { readonly optimizer: Stepping },
  ): Promise<{ value: Scalar; tensors: NamedTensor[] }> {
    this.#assertIdle();
    const reduce = this.#syncing;
    const { findUnused = false, gather, timeline } = this.#options;
    this.#busy = true;
    try {
      if (step !== undefined) this.#check(step.optimizer);
      const { samples } = optionsObject(options, gradientNames, 'gradients');
      aFunction(loss, 'loss');
      const scale = await this.#scaleFor(samples, reduce);
      let usedByAny: Promise<Uint8Array> | undefined;
      const sink = sinkOf(this.#reducer, this.#comm, {
        scale,
        reduce,
        part: reduce && step !== undefined && this.#shards.areSeveral,
        gather,
        onForward: (used) => {
          // Before the buckets, on every rank.
          if (findUnused && reduce) usedByAny = this.#anyUses(used.slice());
        },
      });
      const pass = runPass(sink, this.variables, loss);
      // Awaits both, even if the first fails.
      const [buckets, used] = await Promise.all([this.#reducer.finish(), usedByAny]);
      this.#bucketTimes = buckets;
      this.#times = endPass(pass, buckets, timeline);
      const { value } = pass;
      if (!reduce) return { value, tensors: [] };
      if (step === undefined) return { value, tensors: this.#gather(used, true) };
      await this.#apply(step.optimizer, used);
      return { value, tensors: [] };
    } catch (cause) {
      // The others are in this pass or will be.
      if (reduce || this.#options.uneven === true) failForAll(this.#comm, 'the pass', cause);
      throw cause;
    } finally {
      this.#busy = false;
    }
  }

  /** The weight of this rank's gradients if batches differ. */
  async #scaleFor(samples: number | undefined, reduce: boolean): Promise<number> {
    if (this.#options.uneven === true) return await this.#reducer.attend({ samples, reduce });
    if (samples === undefined) return 1;
    if (!(typeof samples === 'number' && samples >= 0 && samples < Infinity)) {
      throw argumentError('ERR_OUT_OF_RANGE', 'samples', 'a number of at least 0', samples);
    }
    const { op = 'avg' } = this.#options;
    if (op !== 'avg') {
      throw ruleError('ERR_INVALID_ARG_VALUE', `samples cannot be combined with op '${op}'`);
    }
    const [total = 0] = await this.#comm.allReduce(Float64Array.of(samples), this.#calls());
    return total === 0 ? 0 : (samples * this.#comm.size) / total;
  }

  #assertIdle(): void {
    if (this.#busy)
      throw unsupported(
        'a pass, join() or optimizerState() is under way; await it before the next',
      );
  }

  /** Collective. Whether any rank has used each variable. */
  #anyUses(own: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
    return this.#comm.allReduce(own, { op: 'max', ...this.#calls() });
  }

  #calls(): { timeoutMs?: number } {
    const { timeoutMs } = this.#options;
    return timeoutMs === undefined ? {} : { timeoutMs };
  }

  #gather(used: Uint8Array | undefined, keep: boolean): NamedTensor[] {
    const { gather } = this.#options;
    const gradients = reducedTensors(this.#reducer, this.variables, { keep, gather });
    return unusedLeftOut(gradients, (at) => used?.[at] === 0);
  }
}

/** Null for gradients of variables that no rank has used: optimizers skip them. */
function unusedLeftOut(
  gradients: readonly NamedTensor[],
  isUnused: (at: number) => boolean,
): NamedTensor[] {
  return gradients.map(({ name, tensor }, at) => {
    if (!isUnused(at)) return { name, tensor };
    tensor.dispose();
    return { name, tensor: null as unknown as Tensor };
  });
}

function modelOf(model: Trainable, { uneven }: DataParallelOptions): Variable[] {
  const variables = trainableVariables(model);
  const [sync] = uneven === true ? syncLayersOf(model) : [];
  if (sync === undefined) return variables;
  const why = `layer ${sync.name} needs a batch of every rank in every pass`;
  const rule = `uneven cannot be combined with SyncBatchNormalization: ${why}`;
  throw ruleError('ERR_INVALID_ARG_VALUE', rule);
}

function unsupported(message: string): GradlinkError {
  return new GradlinkError('ERR_UNSUPPORTED', `DistributedDataParallel: ${message}`, {
    usable: true,
  });
}
