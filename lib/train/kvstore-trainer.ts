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
   * An optimizer of gradlink, which runs where the store keeps its values, or one of `tf.train`, which each worker runs
   * on the summed gradients (not with `dist_async`).
   */
  readonly optimizer: Optimizer | Pick<InnerOptimizer, 'applyGradients'>;
  /**
   * How gradients are combined: `'mean'` or `'sum'`, like gluon's Trainer. `'mean'` when absent, but `'sum'` if every
   * push is a separate step (`dist_async`).
   */
  readonly reduction?: 'mean' | 'sum' | undefined;
  /** Instead of `reduction`: factor of each worker's gradients before the sum. */
  readonly scale?: number | undefined;
  /**
   * Prefix of the store's keys, before the variable's number, or before `optimizer` for the comparison of workers;
   * `'variable-'` when absent.
   */
  readonly prefix?: string | undefined;
  /**
   * Whether gradients are gathered on the device and transferred in pieces of up to 25 MiB, in both directions. True
   * with a GPU when absent. Pushes then begin per piece.
   */
  readonly gather?: boolean | undefined;
  /** Records passes and waiting times for the store. */
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
/** Known only to create(). */
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
 * Trains over a {@link KVStore} of any type. Each gradient is pushed once the backward pass has computed it, with the
 * highest priority for the first layers, which the next forward pass needs first.
 *
 * @example
 * ```ts
 * await using kv = await KVStore.create('dist_sync');
 * const trainer = await KVStoreTrainer.create(model, kv, { optimizer: new SGD({ learningRate: 0.1 }) });
 * (await trainer.step(() => loss(model.predict(x), y))).dispose();
 * ```
 */
export class KVStoreTrainer {
  /** The trained variables, in the same order on every worker. */
  readonly variables: readonly Variable[];
  readonly #kv: KVStore;
  readonly #keys: readonly string[];
  readonly #options: KVStoreTrainerOptions;
  readonly #scale: number;
  /** The pushed arrays, which receive the pulled values. */
  readonly #sent: readonly Float32Array[];
  readonly #came: readonly Float32Array[];
  /** The pulled values of all variables. */
  readonly #all: Float32Array;
  readonly #gather: boolean;
  #times: PassTimes | undefined;
  #busy = false;
  /** Set if rounds of this worker and the others no longer match. */
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
   * Creates the keys with the first worker's values, which all workers start from. All workers call it.
   *
   * @throws TypeError if the store already has such keys. GradlinkError ERR_MISMATCH on all workers if their optimizers
   *   of `tf.train` differ in class or `getConfig`.
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

  /** The times of the last pass; undefined before the first. */
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
   * Runs one pass, a push and pull of every key, and one step, in the store or here.
   *
   * @param loss - this worker's loss from its own batch, as for `tf.variableGrads`.
   * @returns the loss; the caller disposes it.
   * @throws the error of `loss`, before any push. GradlinkError as the store's operations do; ERR_ABORTED if the
   *   backward pass fails, with the number of pushed keys. If other workers wait for the missing keys, this one cannot
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
      // Pending exchanges still use their arrays.
      await Promise.allSettled(exchanges);
      this.#busy = false;
    }
  }

  /** A pass that pushes gradients as they are computed; a failed one may have pushed some. */
  #pass(loss: () => Scalar, exchanges: Promise<void>[]): PassUnderway {
    try {
      return runPass(this.#sink(exchanges), this.variables, loss);
    } catch (cause) {
      const pushed = exchanges.length;
      if (pushed === 0) throw cause;
      const inRounds = this.#kv.numWorkers > 1 && !this.#kv.type.includes('async');
      const after = inRounds
        ? 'the other workers wait for the rest: close the store, and resume from a checkpoint'
        : 'these keys have taken a step that the others have not';
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
      // Awaited after the pass; until then the rejection is unhandled.
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
   * The pulled values as tensors, with one write if each write is a transfer; the caller disposes them.
   *
   * @param keep - whether they must outlive this step
   */
  #tensors(keep: boolean): Tensor[] {
    if (this.#gather) {
      const shapes = this.variables.map(({ shape }) => shape);
      return scattered(this.#all, shapes);
    }
    return this.variables.map(({ shape }, i) => {
      const came = this.#came[i]!;
      // The cpu backend keeps the given array, which the next step overwrites.
      return tf.tensor(keep ? came.slice() : came, shape);
    });
  }

  #assign(): void {
    const tensors = this.#tensors(true);
    this.variables.forEach((variable, i) => variable.assign(tensors[i]!));
    tf.dispose(tensors);
  }
}
