import type { Scalar, Tensor, Variable } from '@tensorflow/tfjs-core';

import { ruleError, GradlinkError } from '../errors.js';
import {
  aBoolean,
  aFunction,
  aNumber,
  aString,
  having,
  instanceOf,
  notConstructed,
  oneOfWords,
  optionNames,
  optionsObject,
  orAbsent,
} from '../checks.js';
import { KVStore } from '../kvstore/kvstore.js';
import { Optimizer } from '../optimizers/optimizer.js';
import { crossingCosts, scattered } from './crossing.js';
import { endPass, runPass } from './gradient-pass.js';
import type { GradientSink, PassUnderway } from './gradient-pass.js';
import { assertSameOptimizer } from './same-optimizer.js';
import { StoreSink } from './store-sink.js';
import { tf } from './tfjs.js';
import type { InnerOptimizer, PassTimes, Trainable } from './types.js';
import type { Timeline } from '../files/timeline.js';
import { trainableVariables } from './variables.js';

/** Options of {@link KVStoreTrainer.create}. */
export interface KVStoreTrainerOptions {
  /**
   * An optimizer of gradlink, which then runs where the store keeps the values, or one of `tf.train`, which each worker
   * runs on the gradients that the store has summed (not with `dist_async`).
   */
  readonly optimizer: Optimizer | Pick<InnerOptimizer, 'applyGradients'>;
  /**
   * What a step takes of the workers' gradients: their `'mean'`, or their `'sum'`, as gluon's Trainer. `'mean'` when absent,
   * but `'sum'` where every push is a step of its own (`dist_async`).
   */
  readonly reduction?: 'mean' | 'sum' | undefined;
  /** In place of `reduction`: what each worker's gradients are multiplied by before they are summed. */
  readonly scale?: number | undefined;
  /**
   * What the store's keys begin with, before the number of the variable, or before `optimizer` where workers compare
   * theirs; `'variable-'` when absent.
   */
  readonly prefix?: string | undefined;
  /**
   * Whether gradients are gathered on the device, up to 25 MiB read with one call, and what comes back is given to it with
   * one; else each by itself. True where a GPU computes when absent. With it, pushes begin when so much has come.
   */
  readonly gather?: boolean | undefined;
  /** Told when the passes ran and how long the store was waited for. */
  readonly timeline?: Timeline | undefined;
}

const trainerNames = optionNames<KVStoreTrainerOptions>({
  optimizer: true,
  reduction: true,
  scale: true,
  prefix: true,
  gather: true,
  timeline: true,
});

const defaultPrefix = 'variable-';
/** What create() alone has. */
const making = Symbol('create');
const optimizerKind = having({
  optimizer: (value, name) => {
    if (!(value instanceof Optimizer)) having({ applyGradients: aFunction })(value, name);
  },
  reduction: orAbsent(oneOfWords(['mean', 'sum'])),
  scale: orAbsent(aNumber),
  prefix: orAbsent(aString),
  gather: orAbsent(aBoolean),
});

function scaleOf(
  { reduction, scale }: KVStoreTrainerOptions,
  isAsync: boolean,
  workers: number,
): number {
  if (reduction !== undefined && scale !== undefined) {
    throw ruleError('ERR_INVALID_ARG_VALUE', 'reduction and scale cannot be combined');
  }
  const sums = reduction === 'sum' || (reduction === undefined && isAsync);
  return scale ?? (sums ? 1 : 1 / workers);
}

/**
 * Trains over a {@link KVStore} of any type: each gradient is pushed the moment the backward pass has made it, the first
 * layers' with the highest priority, since the next forward pass needs these first.
 *
 * @example
 * ```ts
 * await using kv = await KVStore.create('dist_sync');
 * const trainer = await KVStoreTrainer.create(model, kv, { optimizer: new SGD({ learningRate: 0.1 }) });
 * (await trainer.step(() => loss(model.predict(x), y))).dispose();
 * ```
 */
export class KVStoreTrainer {
  /** What is trained, in the order in which every worker has it. */
  readonly variables: readonly Variable[];
  readonly #kv: KVStore;
  readonly #keys: readonly string[];
  readonly #options: KVStoreTrainerOptions;
  readonly #scale: number;
  /** What is pushed, and what comes back. */
  readonly #sent: readonly Float32Array[];
  readonly #came: readonly Float32Array[];
  /** What comes back, of all variables. */
  readonly #all: Float32Array;
  readonly #gather: boolean;
  #times: PassTimes | undefined;
  #busy = false;
  /** Why rounds of this worker and the others no longer belong together. */
  #partly: GradlinkError | undefined;

  private constructor(
    key: typeof making,
    variables: readonly Variable[],
    kv: KVStore,
    options: KVStoreTrainerOptions,
  ) {
    if (key !== making) throw notConstructed('KVStoreTrainer', 'KVStoreTrainer.create(…)');
    const { prefix = defaultPrefix } = options;
    const isAsync = kv.type.includes('async');
    this.variables = variables;
    this.#kv = kv;
    this.#options = options;
    this.#keys = variables.map((_, index) => `${prefix}${index}`);
    this.#scale = scaleOf(options, isAsync, kv.numWorkers);
    this.#sent = variables.map(({ size }) => new Float32Array(size));
    this.#all = new Float32Array(variables.reduce((sum, { size }) => sum + size, 0));
    let offset = 0;
    this.#came = variables.map(({ size }) => this.#all.subarray(offset, (offset += size)));
    this.#gather = options.gather ?? crossingCosts();
    if (isAsync && !this.#inStore) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        `KVStoreTrainer: a store of type ${kv.type} steps at every push; give it an optimizer of gradlink`,
        { usable: true },
      );
    }
  }

  /**
   * Makes the keys with the first worker's values, which all workers then start from. All workers call it.
   *
   * @throws TypeError where the store has such keys already. GradlinkError ERR_MISMATCH on all workers where they run
   *   optimizers of `tf.train` that differ in their class or in what `getConfig` tells.
   */
  static async create(
    model: Trainable,
    kv: KVStore,
    options: KVStoreTrainerOptions,
  ): Promise<KVStoreTrainer> {
    const given = optionsObject(options, trainerNames, 'KVStoreTrainer');
    instanceOf(kv, KVStore, 'kv', 'a KVStore');
    optimizerKind(given, 'options');
    const trainer = new KVStoreTrainer(making, trainableVariables(model), kv, given);
    await trainer.#start();
    return trainer;
  }

  get #inStore(): boolean {
    return this.#options.optimizer instanceof Optimizer;
  }

  /** Of the last pass; undefined before the first. */
  get times(): PassTimes | undefined {
    return this.#times;
  }

  async #start(): Promise<void> {
    const { optimizer, prefix = defaultPrefix } = this.#options;
    if (!(optimizer instanceof Optimizer)) {
      await assertSameOptimizer(this.#kv, `${prefix}optimizer`, optimizer, 'KVStoreTrainer');
    }
    const values = this.variables.map((one) => Float32Array.from(one.dataSync()));
    const shape = this.variables.map(({ shape: own }) => own);
    await this.#kv.init(this.#keys, values, { shape });
    await this.#kv.pull(this.#keys, [...this.#came]);
    this.#assign();
    if (optimizer instanceof Optimizer) await this.#kv.setOptimizer(optimizer);
  }

  /**
   * One pass, one push and pull of every key, and one step, in the store or here.
   *
   * @param loss - this worker's, computed from its own batch, as for `tf.variableGrads`.
   * @returns the loss; the caller disposes it.
   * @throws what `loss` throws: nothing was pushed then. GradlinkError as the store's operations do; ERR_ABORTED where the
   *   backward pass fails, with how many keys had been pushed by then. Where other workers wait for the others, this one cannot
   *   step again.
   */
  async step(loss: () => Scalar): Promise<Scalar> {
    if (this.#busy) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        'KVStoreTrainer: a step is under way; await it before the next',
        { usable: true },
      );
    }
    aFunction(loss, 'loss');
    if (this.#partly !== undefined) throw this.#partly;
    this.#busy = true;
    const exchanges: Promise<void>[] = [];
    try {
      const pass = this.#pass(loss, exchanges);
      await Promise.all(exchanges);
      this.#times = endPass(pass, [], this.#options.timeline);
      const { optimizer } = this.#options;
      if (optimizer instanceof Optimizer) {
        this.#assign();
      } else {
        const tensors = this.#tensors(false);
        optimizer.applyGradients(
          this.variables.map(({ name }, i) => ({ name, tensor: tensors[i]! })),
        );
        tf.dispose(tensors);
      }
      return pass.value;
    } finally {
      // The arrays of those that are still on their way are theirs.
      await Promise.allSettled(exchanges);
      this.#busy = false;
    }
  }

  /** A pass whose gradients are pushed as they come: one that fails may have pushed some of them. */
  #pass(loss: () => Scalar, exchanges: Promise<void>[]): PassUnderway {
    try {
      return runPass(this.#sink(exchanges), this.variables, loss);
    } catch (cause) {
      const pushed = exchanges.length;
      if (pushed === 0) throw cause;
      const inRounds = this.#kv.numWorkers > 1 && !this.#kv.type.includes('async');
      const after = inRounds
        ? 'the other workers wait for the rest: close the store, and go on from a checkpoint'
        : 'these have taken a step that the others have not';
      const message = `KVStoreTrainer: the backward pass failed when ${pushed} of ${this.#keys.length} keys had been pushed; ${after}`;
      const partly = new GradlinkError('ERR_ABORTED', message, { cause, usable: !inRounds });
      if (inRounds) this.#partly = partly;
      throw partly;
    }
  }

  #sink(exchanges: Promise<void>[]): GradientSink {
    const exchange = (index: number) => {
      const done = this.#kv.pushPull(this.#keys[index]!, this.#sent[index]!, this.#came[index], {
        priority: -index,
      });
      // Looked at when the pass has run; until then its failure is nobody's.
      done.catch(() => undefined);
      exchanges.push(done);
    };
    return new StoreSink({
      sent: this.#sent,
      scale: this.#scale,
      gather: this.#gather,
      exchange,
    });
  }

  /**
   * What came, as tensors, with one write where writing costs a transfer; the caller's to dispose.
   *
   * @param keep - whether they outlive this step.
   */
  #tensors(keep: boolean): Tensor[] {
    if (this.#gather) {
      const shapes = this.variables.map(({ shape }) => shape);
      return scattered(this.#all, shapes);
    }
    return this.variables.map(({ shape }, i) => {
      const came = this.#came[i]!;
      // The cpu backend keeps the very array it is given, which the next step overwrites.
      return tf.tensor(keep ? came.slice() : came, shape);
    });
  }

  #assign(): void {
    const tensors = this.#tensors(true);
    this.variables.forEach((variable, i) => variable.assign(tensors[i]!));
    tf.dispose(tensors);
  }
}
