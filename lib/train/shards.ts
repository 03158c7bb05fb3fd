// Steps shared by the ranks, ZeRO's second stage: of each bucket every rank steps an n-th, wherever in it variables end.
//
//   gradients  one reduce-scatter a bucket: a rank gets its own part alone
//   step       the optimizer gets what lies in this rank's parts: whole variables, and pieces of those that a part's end cuts,
//              which are variables of their own for one step. Always in the same order: so it keeps their state only
//   values     one all-gather a bucket, in the memory where the gradients were
//   state      travels the same way when a checkpoint asks for the whole (optimizer-arrays.ts)
import type { Tensor, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';

import type { CallOptions } from '../communicator/calls/types.js';
import type { Communicator } from '../communicator/communicator.js';
import { GradlinkError, argumentError } from '../errors.js';
import type { Bucket } from './buckets/types.js';
import { crossingCosts, ownValues, scattered } from './crossing.js';
import { readValues, writeValues } from './flat-weights.js';
import { stateListsOf } from './optimizer-arrays.js';
import { wrapper } from './optimizer-state.js';
import { tf } from './tfjs.js';

/** An optimizer whose state is that of one rank's pieces belongs to the shards that they are of. */
const holders = new WeakMap<object, Shards>();

export interface ShardOptions {
  /** Whose parts the ranks step; without them every rank steps all. */
  readonly buckets?: readonly Bucket[] | undefined;
  /** Whether values cross between device and host at once. */
  readonly gather?: boolean | undefined;
  readonly calls: CallOptions;
}

/** So many elements of a variable, row-major, from `begin` on. */
export interface Piece {
  /** The variable's. */
  readonly index: number;
  readonly begin: number;
  readonly size: number;
  /** The variable's, where it is whole. */
  readonly shape: readonly number[];
}

/** A bucket, and what this rank steps of it: the pieces fill its part from the start, in their order. */
interface Share {
  readonly bucket: Bucket;
  readonly pieces: readonly Piece[];
}

/** Values of some variables, one after the other. They are overwritten once the next are asked for. */
interface Round {
  readonly indices: readonly number[];
  readonly data: Float32Array;
}

export class Shards {
  /** What this rank steps. */
  readonly own: readonly Piece[];
  /** Whether other ranks step anything else. */
  readonly areSeveral: boolean;
  readonly #variables: readonly Variable[];
  readonly #comm: Communicator;
  readonly #calls: CallOptions;
  readonly #gather: boolean;
  readonly #shares: readonly Share[];
  /** For what travels while the buckets may hold gradients. */
  #spare: Float32Array | undefined;

  constructor(variables: readonly Variable[], comm: Communicator, options: ShardOptions) {
    const { buckets = [], gather, calls } = options;
    this.areSeveral = options.buckets !== undefined && comm.size > 1;
    this.#variables = variables;
    this.#comm = comm;
    this.#calls = calls;
    this.#gather = gather ?? crossingCosts();
    this.#shares = buckets.map((bucket) => ({
      bucket,
      pieces: piecesOf(bucket, variables, comm.rank),
    }));
    this.own = this.areSeveral
      ? this.#shares.flatMap(({ pieces }) => pieces)
      : variables.map(({ size, shape }, index) => ({ index, begin: 0, size, shape }));
  }

  /** For each of {@link own} what an optimizer steps; the caller's to {@link release}. */
  targets(): Variable[] {
    return this.own.map(({ index, begin, size }) => {
      const variable = this.#variables[index]!;
      if (size === variable.size) return variable;
      const flat = (): Tensor => tf.reshape(variable, [variable.size]);
      return tf.tidy(() => tf.variable(tf.slice(flat(), [begin], [size]), false));
    });
  }

  release(targets: readonly Variable[]): void {
    targets.forEach((target, at) => {
      if (target !== this.#variables[this.own[at]!.index]) target.dispose();
    });
  }

  /** What a reduce-scatter has left in this rank's parts, for each of {@link own}; until the buckets are used again. */
  gradients(targets: readonly Variable[]): NamedTensor[] {
    const tensors = this.#shares.flatMap(({ bucket, pieces }) => {
      const values = this.#partOf(bucket, bucket.data);
      const shapes = pieces.map(({ shape }) => shape);
      if (this.#gather && pieces.length > 0) {
        const elements = pieces.reduce((sum, { size }) => sum + size, 0);
        return scattered(values.subarray(0, elements), shapes);
      }
      let offset = 0;
      return pieces.map(({ size, shape }) => {
        const from = offset;
        offset += size;
        return tf.tensor(values.subarray(from, offset), [...shape]);
      });
    });
    return targets.map(({ name }, at) => ({ name, tensor: tensors[at]! }));
  }

  #partOf({ part }: Bucket, values: Float32Array): Float32Array {
    return values.subarray(this.#comm.rank * part, (this.#comm.rank + 1) * part);
  }

  /** Collective, after each rank's step of its `targets`: all variables get the values of all. */
  async spread(targets: readonly Variable[]): Promise<void> {
    const whole = new Set<Variable>(targets);
    const travel = this.#travel(
      (at) => targets[at]!,
      ({ data }) => data,
    );
    for await (const { indices, data } of travel) {
      const variables = indices.map((index) => this.#variables[index]!);
      writeValues(variables, data, this.#gather, (at) => !whole.has(variables[at]!));
    }
  }

  /**
   * Collective. What each rank has for its own pieces, on all ranks.
   *
   * @param read - for each of {@link own}, a tensor of as many elements.
   */
  async *exchange(read: (at: number) => Tensor): AsyncGenerator<Round> {
    if (!this.areSeveral) {
      for (const { index } of this.own) yield { indices: [index], data: ownValues(read(index)) };
      return;
    }
    const most = Math.max(0, ...this.#shares.map(({ bucket }) => bucket.data.length));
    const spare = (this.#spare ??= this.#comm.allocShared('float32', most));
    yield* this.#travel(read, ({ data }) => spare.subarray(0, data.length));
  }

  async *#travel(
    read: (at: number) => Tensor,
    memoryOf: (bucket: Bucket) => Float32Array,
  ): AsyncGenerator<Round> {
    let before = 0;
    for (const { bucket, pieces } of this.#shares) {
      const first = before;
      before += pieces.length;
      const all = memoryOf(bucket);
      const part = this.#partOf(bucket, all);
      readValues(
        pieces.map((_, i) => read(first + i)),
        part,
        this.#gather,
      );
      await this.#comm.allGather(part, { out: all, ...this.#calls });
      yield { indices: bucket.gradients, data: all.subarray(0, bucket.elements) };
    }
  }

  /** Before a step: the optimizer's state is, or will be, that of this rank's own pieces. */
  assertFits(optimizer: object): void {
    const holder = holders.get(optimizer);
    if (holder === this || (holder === undefined && !this.areSeveral)) return;
    const isNew = stateListsOf(optimizer).size === 0 && !(wrapper in optimizer);
    if (holder === undefined && isNew) return;
    const expected =
      'an optimizer of tf.train that has not stepped, or has stepped here alone (setOptimizerState() gives a new one its state)';
    const text = wrapper in optimizer ? 'one that averages by itself' : 'one with other state';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'optimizer', expected, { text });
  }

  /** From here on the optimizer's state is that of this rank's own pieces. */
  hold(optimizer: object): void {
    if (this.areSeveral) holders.set(optimizer, this);
    else holders.delete(optimizer);
  }
}

/** @throws GradlinkError ERR_UNSUPPORTED where each rank keeps other parts of the state. */
export function assertWhole(optimizer: object, op: string): void {
  if (!holders.has(optimizer)) return;
  const instead = 'optimizerState() of the DistributedDataParallel gives all of it';
  throw new GradlinkError(
    'ERR_UNSUPPORTED',
    `${op}: expected an optimizer whose state is whole, got one with the state of this rank's part; ${instead}`,
    { op, usable: true },
  );
}

/** What rank `rank` steps of a bucket, in the order in which it lies there. */
function piecesOf(
  { gradients, part }: Pick<Bucket, 'gradients' | 'part'>,
  variables: readonly Variable[],
  rank: number,
): Piece[] {
  const pieces: Piece[] = [];
  let offset = 0;
  for (const index of gradients) {
    const { size: all, shape } = variables[index]!;
    const begin = Math.max(rank * part - offset, 0);
    const size = Math.min((rank + 1) * part - offset, all) - begin;
    if (size > 0) pieces.push({ index, begin, size, shape: size === all ? shape : [size] });
    offset += all;
  }
  return pieces;
}
