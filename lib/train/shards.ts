// Sharded optimizer steps, ZeRO's second stage: every rank updates an n-th of each bucket, across variable boundaries.
//   gradients  one reduce-scatter per bucket: a rank gets only its part
//   step       the optimizer gets this rank's parts: whole variables, and pieces of cut ones, which are variables of
//              their own for one step. The order is fixed, so it keeps only their state
//   values     one all-gather per bucket, in the memory of the gradients
//   state      is gathered the same way for checkpoints (optimizer-arrays.ts)
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

/** The shards of an optimizer whose state covers only one rank's pieces. */
const holders = new WeakMap<object, Shards>();

export interface ShardOptions {
  /** The buckets to shard; without them every rank updates everything. */
  readonly buckets?: readonly Bucket[] | undefined;
  /** Whether values are transferred between device and host at once. */
  readonly gather?: boolean | undefined;
  readonly calls: CallOptions;
}

/** Consecutive elements of a variable, row-major, from `begin` on. */
export interface Piece {
  /** Index of the variable. */
  readonly index: number;
  readonly begin: number;
  readonly size: number;
  /** The variable's shape, if it is whole. */
  readonly shape: readonly number[];
}

/** A bucket with this rank's pieces, which fill its part from the start. */
interface Share {
  readonly bucket: Bucket;
  readonly pieces: readonly Piece[];
}

/** Concatenated values of some variables, overwritten by the next round. */
interface Round {
  readonly indices: readonly number[];
  readonly data: Float32Array;
}

export class Shards {
  /** This rank's pieces. */
  readonly own: readonly Piece[];
  /** Whether other ranks have pieces too. */
  readonly areSeveral: boolean;
  readonly #variables: readonly Variable[];
  readonly #comm: Communicator;
  readonly #calls: CallOptions;
  readonly #gather: boolean;
  readonly #shares: readonly Share[];
  /** For transfers while the buckets may hold gradients. */
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

  /** The optimizer's variables for {@link own}; the caller must {@link release} them. */
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

  /** The reduced gradients of {@link own} from this rank's parts, valid until the buckets are used again. */
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

  /** Collective, after each rank's step of its `targets`: copies the new values to all ranks. */
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
   * Collective. Gathers a value of each piece on all ranks.
   *
   * @param read - for each of {@link own}, a tensor of the same size
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

  /** Checks before a step that the optimizer's state belongs to this rank's pieces. */
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

  /** Marks the optimizer's state as that of this rank's pieces. */
  hold(optimizer: object): void {
    if (this.areSeveral) holders.set(optimizer, this);
    else holders.delete(optimizer);
  }
}

/** @throws GradlinkError ERR_UNSUPPORTED if each rank keeps a different part of the state */
export function assertWhole(optimizer: object, op: string): void {
  if (!holders.has(optimizer)) return;
  const instead = 'optimizerState() of the DistributedDataParallel gives all of it';
  throw new GradlinkError(
    'ERR_UNSUPPORTED',
    `${op}: expected an optimizer whose state is whole, got one with the state of this rank's part; ${instead}`,
    { op, usable: true },
  );
}

/** The pieces of rank `rank` in a bucket, in memory order. */
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
