// Data-parallel training of one model: each rank its batch, gradients averaged in buckets while backward runs.
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

/** What create() alone has. */
const making = Symbol('create');
const applies = having({ applyGradients: aFunction });
const optionKinds = having({ shard: orAbsent(aBoolean) });

/** What steps. */
type Stepping = Pick<InnerOptimizer, 'applyGradients'>;

/**
 * Trains the same model on every rank, each with its own batch, as if one had trained with all batches: gradients are
 * averaged over the ranks, in buckets, while the backward pass still runs.
 *
 * All ranks make the same calls. Each rank has an optimizer of its own; since all see the same gradients, all variables
 * stay the same.
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
  /** What is trained, in the order in which every rank has it. */
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
      // What a rank steps, and the state of it, go by the buckets.
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
   * Collective. Takes rank 0's values to all ranks and lays the buckets out.
   *
   * @param model - a `tf.LayersModel`, or variables; the same on every rank, in the same order.
   * @throws GradlinkError ERR_MISMATCH where the ranks' variables differ in number or size.
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
        const why = 'a rank steps its part of each bucket, so buckets stay as they are';
        throw ruleError('ERR_INVALID_ARG_VALUE', `shard cannot be combined with rebuild: ${why}`);
      }
      if (given.shard === true && comm.joinable) {
        const why = 'nobody would step the part of a rank that has joined; give uneven instead';
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

  /** Which variables share a bucket, in the order in which the buckets are reduced. */
  get buckets(): readonly BucketPlan[] {
    return this.#reducer.plan;
  }

  /** Of the last pass; undefined before the first. */
  get times(): PassTimes | undefined {
    return this.#times;
  }

  /** When the buckets of the last pass were reduced. */
  get bucketTimes(): readonly BucketTimes[] {
    return this.#bucketTimes;
  }

  /**
   * Gradients of `loss`, averaged over the ranks.
   *
   * @param loss - this rank's, computed from its own batch, as for `tf.variableGrads`.
   * @throws GradlinkError as a collective does, ERR_PEER_LOST above all. Where `loss`, its gradient or the
   *   arguments are wrong on one rank alone, the communicator is aborted: the others get ERR_ABORTED with its reason.
   */
  async gradients(loss: () => Scalar, options?: GradientOptions): Promise<Gradients> {
    const { value, tensors } = await this.#run(loss, options);
    return { value, gradients: tensors };
  }

  /**
   * {@link gradients}, and one `applyGradients` with all of them, or with those of this rank's part (`shard`). Inside
   * {@link noSync} nothing is applied.
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

  /** A step of this rank's part, after which all have those of the others. */
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
   * Collective. The optimizer's steps and all that it keeps of the variables, as arrays for {@link saveCheckpoint}: the same
   * on every rank, whichever keeps what of it, and whatever the number of ranks. Rates and other settings are not among
   * them.
   *
   * @throws GradlinkError ERR_UNSUPPORTED for an optimizer that keeps state otherwise than those of `tf.train`;
   *   ERR_MISMATCH where ranks have optimizers of other classes, or after other steps.
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
   * Gives an optimizer what {@link optimizerState} gave, of which it takes this rank's part. Other arrays,
   * those of the model for example, may be among them.
   *
   * @throws GradlinkError ERR_MISMATCH for the state of another class or of other variables: nothing is changed then.
   */
  setOptimizerState(optimizer: InnerOptimizer, arrays: readonly NamedArray[]): void {
    this.#assertIdle();
    setStateArrays(optimizer, this.variables, this.#shards.own, arrays);
    this.#shards.hold(optimizer);
  }

  /**
   * Passes inside `body` only add their gradients up, on each rank for itself; the next pass outside averages the sum of
   * all. For gradients of batches that are too large for one pass.
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
   * Collective, for ranks whose data end at different times (`uneven`): a rank that has no more calls this and takes part
   * in the passes of the others with nothing of its own, until all have joined. Then every rank gets the values of the
   * one that joined last, those that are not trained included.
   *
   * @returns the rank that joined last; of several the highest.
   * @throws GradlinkError ERR_UNSUPPORTED without `uneven`; else as a collective does, ERR_PEER_LOST above all.
   */
  async join(options?: JoinTrainingOptions): Promise<number> {
    const { optimizer } = optionsObject(options, joinNames, 'join');
    if (optimizer !== undefined) this.#check(optimizer);
    this.#assertIdle();
    const { findUnused = false, uneven = false } = this.#options;
    if (!uneven) throw unsupported('join() needs the option uneven, on every rank');
    if (optimizer === undefined && this.#shards.areSeveral) {
      const why = 'this rank steps its part for the others until all have joined';
      throw ruleError('ERR_INVALID_ARG_VALUE', `join() needs an optimizer with shard: ${why}`);
    }
    this.#busy = true;
    try {
      let used: Promise<Uint8Array> | undefined;
      const last = await this.#reducer.join({
        before: () => {
          // Looked after below, once the buckets are reduced, as the others do.
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
      // Both are looked after even where the first fails.
      const [buckets, used] = await Promise.all([this.#reducer.finish(), usedByAny]);
      this.#bucketTimes = buckets;
      this.#times = endPass(pass, buckets, timeline);
      const { value } = pass;
      if (!reduce) return { value, tensors: [] };
      if (step === undefined) return { value, tensors: this.#gather(used, true) };
      await this.#apply(step.optimizer, used);
      return { value, tensors: [] };
    } catch (cause) {
      // The others are in this pass, or will be.
      if (reduce || this.#options.uneven === true) failForAll(this.#comm, 'the pass', cause);
      throw cause;
    } finally {
      this.#busy = false;
    }
  }

  /** What this rank's gradients count, where batches differ. */
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

  /** Collective. For each variable whether any rank has used it. */
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

/** Null, which optimizers pass over, for the gradients of what no rank has used. */
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

/** What is trained. */
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
