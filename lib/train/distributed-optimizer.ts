import type { Scalar, Tensor, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';

import type { Communicator } from '../communicator/communicator.js';
import { failForAll } from '../communicator/composed/agreement.js';
import { GradlinkError, argumentError, ruleError } from '../errors.js';
import {
  aFunction,
  anObject,
  having,
  integer,
  maxInt32,
  oneOf,
  optionNames,
  optionsObject,
  someOf,
} from '../checks.js';
import { algorithms, assertNeighbors, averagingOf } from './averaging.js';
import type { Averaging } from './averaging.js';
import { GradientReducer } from './buckets/reducer.js';
import { monotonicSeconds } from '../time.js';
import { FlatWeights } from './flat-weights.js';
import { reducedTensors } from './gradient-gather.js';
import { endPass, runPass, sinkOf } from './gradient-pass.js';
import type { PassUnderway } from './gradient-pass.js';
import { wrapper, type Wrapper } from './optimizer-state.js';
import { assertRankOnHost } from './ranks.js';
import { tf } from './tfjs.js';
import type {
  DistributedOptimizerOptions,
  InnerOptimizer,
  PassTimes,
  Trainable,
  TrainingAlgorithm,
} from './types.js';
import { registeredVariables, specsOf, trainableVariables } from './variables.js';

const optimizerNames = optionNames<DistributedOptimizerOptions>({
  algorithm: true,
  op: true,
  compression: true,
  backwardPassesPerStep: true,
  groups: true,
  stepsPerCommunication: true,
  neighbors: true,
  machineNeighbors: true,
  gather: true,
  timeline: true,
  timeoutMs: true,
});

/** The default `stepsPerCommunication` of {@link TrainingAlgorithm} `'local-sgd'`. */
const localSteps = 8;

/** The state for one list of variables. */
interface Training {
  readonly variables: readonly Variable[];
  /** Set if gradients are reduced. */
  readonly reducer: GradientReducer | undefined;
  /** Set if weights are averaged. */
  readonly weights: FlatWeights | undefined;
  /** Weights before the step, if its change is averaged. */
  readonly before: Float32Array | undefined;
}

/**
 * Wraps an optimizer of `tf.train` for training on several ranks. All ranks use the same options and the same variables
 * in the same order; start from equal weights with {@link broadcastVariables}.
 *
 * `minimize` blocks until the ranks are in sync, so that it works with `model.compile({ optimizer })` and `model.fit`.
 * In your own loop, `minimizeAsync` does not block and overlaps averaging with the backward pass.
 *
 * If a step fails on one rank, in its loss or optimizer, the others get ERR_ABORTED with the reason.
 *
 * @example
 * ```ts
 * const optimizer = new DistributedOptimizer(tf.train.adam(), comm);
 * model.compile({ optimizer, loss: 'categoricalCrossentropy' });
 * await broadcastVariables(model, comm);
 * await model.fit(x, y);
 * ```
 */
export class DistributedOptimizer extends tf.Optimizer implements Wrapper {
  /** tfjs's registration name. */
  static readonly className = 'DistributedOptimizer';

  /** The wrapped optimizer. */
  readonly inner: InnerOptimizer;
  /** How ranks are synchronised. */
  readonly algorithm: TrainingAlgorithm;
  readonly #comm: Communicator;
  readonly #options: DistributedOptimizerOptions;
  readonly #averaging: Averaging | undefined;
  readonly #passesPerStep: number;
  readonly #stepsPerCommunication: number;
  #training: Training | undefined;
  #passes = 0;
  #steps = 0;
  #times: PassTimes | undefined;

  constructor(inner: InnerOptimizer, comm: Communicator, options?: DistributedOptimizerOptions) {
    super();
    const given = optionsObject(options, optimizerNames, 'DistributedOptimizer');
    const algorithm = oneOf(given.algorithm ?? 'gradient-allreduce', 'algorithm', algorithms);
    if (typeof (inner as Partial<InnerOptimizer> | undefined)?.applyGradients !== 'function') {
      throw argumentError('ERR_INVALID_ARG_TYPE', 'optimizer', 'an optimizer of tf.train', inner);
    }
    for (const name of ['op', 'compression', 'groups', 'backwardPassesPerStep'] as const) {
      if (given[name] === undefined || algorithm === 'gradient-allreduce') continue;
      const rule = `${name} needs algorithm 'gradient-allreduce', not '${algorithm}'`;
      throw ruleError('ERR_INVALID_ARG_VALUE', rule);
    }
    assertNeighbors(algorithm, given);
    const count = (name: 'backwardPassesPerStep' | 'stepsPerCommunication', fallback: number) =>
      integer(given[name] ?? fallback, name, 1, maxInt32);
    assertRankOnHost(comm, 'comm');
    this.inner = inner;
    this.algorithm = algorithm;
    this.#comm = comm;
    this.#options = given;
    this.#averaging = averagingOf(algorithm, comm, given);
    this.#passesPerStep = count('backwardPassesPerStep', 1);
    this.#stepsPerCommunication = count(
      'stepsPerCommunication',
      algorithm === 'local-sgd' ? localSteps : 1,
    );
  }

  /** Times of the last {@link minimize} or {@link minimizeAsync}; undefined before the first. */
  get times(): PassTimes | undefined {
    return this.#times;
  }

  /** @internal The counters for {@link broadcastOptimizerState}, which decide the next synchronisation. */
  get [wrapper](): Wrapper[typeof wrapper] {
    const { op = 'avg', compression = 'none' } = this.#options;
    const own = { passes: this.#passes, steps: this.#steps };
    const take = (counts: Readonly<Record<string, number>>): void => {
      this.#passes = counts['passes']!;
      this.#steps = counts['steps']!;
    };
    return {
      inner: this.inner,
      settings: {
        algorithm: this.algorithm,
        op,
        compression,
        backwardPassesPerStep: this.#passesPerStep,
        stepsPerCommunication: this.#stepsPerCommunication,
      },
      get counts() {
        return own;
      },
      set counts(counts) {
        take(counts);
      },
    };
  }

  /** Steps of the wrapped optimizer. */
  override get iterations(): number {
    return this.inner.iterations;
  }

  /** Collective: prepares the algorithm for these variables. Required only for `'window-put'`. */
  async prepare(model: Trainable): Promise<void> {
    const { weights } = this.#for(trainableVariables(model));
    if (weights === undefined) return;
    weights.read();
    await this.#averaging?.prepare?.(weights);
  }

  /**
   * One pass and, every `backwardPassesPerStep`, one step. Blocks until the ranks are in sync: no other rank may need
   * this thread.
   */
  override minimize(f: () => Scalar, returnCost = false, varList?: Variable[]): Scalar | null {
    return this.#forAll(() => {
      const training = this.#for(varList ?? registeredVariables());
      const average = this.#averagesNow();
      if (average?.place === 'before') training.weights!.read();
      const pass = this.#pass(f, training);
      const buckets = training.reducer?.finishSync() ?? [];
      if (average?.place === 'before') average.runSync(training.weights!, this.#round);
      this.#times = endPass(pass, buckets, this.#options.timeline);
      if (this.#passes % this.#passesPerStep === 0) {
        this.#applyLocally(training, average, this.#gradientsOf(training, pass, false));
        if (average !== undefined && average.place !== 'before') {
          average.runSync(training.weights!, this.#round);
        }
        this.#settle(training, average);
      }
      return returned(pass, returnCost);
    });
  }

  /** {@link minimize}, without blocking. */
  async minimizeAsync(
    f: () => Scalar,
    returnCost = false,
    varList?: Variable[],
  ): Promise<Scalar | null> {
    let met: Promise<void> | undefined;
    try {
      return await this.#step(f, returnCost, varList, (running) => {
        met = running;
      });
    } catch (cause) {
      failForAll(this.#comm, 'the step', cause);
      // The averaging uses the weights until then.
      await met?.catch(() => undefined);
      throw cause;
    }
  }

  async #step(
    f: () => Scalar,
    returnCost: boolean,
    varList: Variable[] | undefined,
    began: (met: Promise<void>) => void,
  ): Promise<Scalar | null> {
    const training = this.#for(varList ?? registeredVariables());
    const average = this.#averagesNow();
    let met: Promise<void> | undefined;
    if (average?.place === 'before') {
      training.weights!.read();
      met = average.run(training.weights!, this.#round);
      // Reported below; until then the rejection is unhandled.
      met.catch(() => undefined);
      began(met);
    }
    const pass = this.#pass(f, training);
    const buckets = (await training.reducer?.finish()) ?? [];
    await met;
    this.#times = endPass(pass, buckets, this.#options.timeline);
    if (this.#passes % this.#passesPerStep === 0) {
      this.#applyLocally(training, average, this.#gradientsOf(training, pass, false));
      if (average !== undefined && average.place !== 'before') {
        await average.prepare?.(training.weights!);
        await average.run(training.weights!, this.#round);
      }
      this.#settle(training, average);
    }
    return returned(pass, returnCost);
  }

  /**
   * A loss and its gradients, averaged over the ranks if the algorithm does so; blocks as {@link minimize}.
   *
   * @throws GradlinkError ERR_UNSUPPORTED with `backwardPassesPerStep` above 1, which needs {@link minimize}.
   */
  override computeGradients(
    f: () => Scalar,
    varList?: Variable[],
  ): {
    /** The loss. */ value: Scalar;
    /** By name of the variable. */ grads: Record<string, Tensor>;
  } {
    if (this.#passesPerStep > 1) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        'computeGradients: with backwardPassesPerStep above 1 call minimize() or minimizeAsync()',
        { usable: true },
      );
    }
    return this.#forAll(() => {
      const training = this.#for(varList ?? registeredVariables());
      aFunction(f, 'f');
      if (training.reducer === undefined) return tf.variableGrads(f, [...training.variables]);
      const pass = this.#pass(f, training);
      this.#times = endPass(pass, training.reducer.finishSync(), this.#options.timeline);
      const grads: Record<string, Tensor> = {};
      for (const { name, tensor } of this.#gradientsOf(training, pass, true)) grads[name] = tensor;
      return { value: pass.value, grads };
    });
  }

  /** Steps the wrapped optimizer and averages weights; blocks as {@link minimize}. */
  override applyGradients(gradients: Record<string, Tensor> | NamedTensor[]): void {
    this.#forAll(() => {
      anObject(gradients, 'gradients');
      const list = Array.isArray(gradients)
        ? gradients
        : Object.entries(gradients).map(([name, tensor]) => ({ name, tensor }));
      const byName = tf.engine().registeredVariables;
      const training = this.#for(list.map(({ name }) => byName[name]!));
      const average = this.#averagesNow();
      if (average?.place === 'before') {
        training.weights!.read();
        average.runSync(training.weights!, this.#round);
      }
      this.#stepLocally(training, average, list);
      if (average !== undefined && average.place !== 'before') {
        average.runSync(training.weights!, this.#round);
      }
      this.#settle(training, average);
    });
  }

  /** State of the wrapped optimizer. */
  override getWeights(): Promise<NamedTensor[]> {
    return this.inner.getWeights();
  }

  /** Restores the state from `getWeights`. */
  override setWeights(weights: NamedTensor[]): Promise<void> {
    someOf(having({ tensor: anObject }))(weights, 'weights');
    return this.inner.setWeights(weights);
  }

  /** The step count, as tfjs saves it. */
  override saveIterations(): Promise<NamedTensor> {
    return Promise.resolve({ name: 'iter', tensor: tf.scalar(this.iterations, 'int32') });
  }

  getConfig(): Record<string, never> {
    return {};
  }

  /** Collective for `'window-put'`: frees its window. */
  async close(): Promise<void> {
    await this.#averaging?.close?.();
  }

  override dispose(): void {
    this.inner.dispose();
  }

  /** Reports a failure of this rank alone to the others, which wait for it or will. */
  #forAll<T>(step: () => T): T {
    try {
      return step();
    } catch (cause) {
      failForAll(this.#comm, 'the step', cause);
      throw cause;
    }
  }

  #for(variables: readonly Variable[]): Training {
    const known = this.#training;
    if (known !== undefined) {
      const same =
        known.variables.length === variables.length &&
        known.variables.every((variable, i) => variable === variables[i]);
      if (same) return known;
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        `DistributedOptimizer: expected the ${known.variables.length} variables of the first step in their order, ` +
          `got ${variables.length}; make one optimizer for each list`,
        { usable: true },
      );
    }
    const list = trainableVariables(variables);
    const { groups, op, compression, timeoutMs } = this.#options;
    const bytes = list.reduce((sum, { size }) => sum + size * 4, 0);
    const cap =
      groups === undefined ? undefined : Math.ceil(bytes / integer(groups, 'groups', 1, maxInt32));
    const averages = this.#averaging !== undefined;
    const weights = averages ? new FlatWeights(list, this.#comm, this.#options.gather) : undefined;
    this.#training = {
      variables: list,
      weights,
      before:
        this.#averaging?.place === 'of-change' ? new Float32Array(weights!.data.length) : undefined,
      reducer: averages
        ? undefined
        : new GradientReducer(this.#comm, specsOf(list), {
            mode: 'overlap',
            op,
            hook: compression,
            timeoutMs,
            bucketCapBytes: cap,
          }),
    };
    return this.#training;
  }

  /** The number of the next averaging. */
  get #round(): number {
    return Math.floor(this.#steps / this.#stepsPerCommunication);
  }

  #averagesNow(): Averaging | undefined {
    const due = (this.#steps + 1) % this.#stepsPerCommunication === 0;
    return due ? this.#averaging : undefined;
  }

  #pass(f: () => Scalar, { reducer, variables }: Training): OwnPass {
    aFunction(f, 'f');
    this.#passes++;
    if (reducer === undefined) return ownPass(f, variables);
    const reduce = this.#passes % this.#passesPerStep === 0;
    return runPass(
      sinkOf(reducer, this.#comm, { reduce, gather: this.#options.gather }),
      variables,
      f,
    );
  }

  /** The gradients of all variables in order: reduced, or this rank's own. */
  #gradientsOf({ reducer, variables }: Training, pass: OwnPass, keep: boolean): NamedTensor[] {
    return reducer === undefined
      ? variables.map(({ name }) => ({ name, tensor: pass.grads![name]! }))
      : reducedTensors(reducer, variables, { keep, gather: this.#options.gather });
  }

  #applyLocally(
    training: Training,
    average: Averaging | undefined,
    gradients: NamedTensor[],
  ): void {
    const apply = () => {
      this.#stepLocally(training, average, gradients);
    };
    const { timeline } = this.#options;
    if (timeline === undefined) apply();
    else timeline.span('compute', 'apply', apply);
    tf.dispose(gradients.map(({ tensor }) => tensor));
  }

  #stepLocally(
    { weights, before }: Training,
    average: Averaging | undefined,
    gradients: NamedTensor[],
  ): void {
    if (average?.place === 'before') weights!.write();
    if (average?.place === 'of-change') {
      weights!.read();
      before!.set(weights!.data);
    }
    this.inner.applyGradients(gradients);
    if (average === undefined || average.place === 'before') return;
    weights!.read();
    if (average.place === 'of-change') {
      const { data } = weights!;
      for (let i = 0; i < data.length; ++i) data[i]! -= before![i]!;
    }
  }

  #settle({ weights, before }: Training, average: Averaging | undefined): void {
    this.#steps++;
    if (average === undefined || average.place === 'before') return;
    if (average.place === 'of-change') {
      const { data } = weights!;
      for (let i = 0; i < data.length; ++i) data[i]! += before![i]!;
    }
    weights!.write();
  }
}

/** A pass without a reduction. */
type OwnPass = PassUnderway & { readonly grads?: Record<string, Tensor> };

function ownPass(f: () => Scalar, variables: readonly Variable[]): OwnPass {
  const forwardStart = monotonicSeconds();
  let forwardEnd = forwardStart;
  const { value, grads } = tf.variableGrads(() => {
    const result = f();
    forwardEnd = monotonicSeconds();
    return result;
  }, [...variables]);
  const backwardEnd = monotonicSeconds();
  return { value, grads, forwardStart, forwardEnd, backwardEnd, copySeconds: 0 };
}

function returned({ value }: PassUnderway, wanted: boolean): Scalar | null {
  if (wanted) return value;
  value.dispose();
  return null;
}
