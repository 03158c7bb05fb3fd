// Steps dealt out over the ranks, by whole variables: ZeRO's first stage. Each variable has an owner, the rank that steps it.
//
//   gradients  are averaged in buckets as without: every rank has all of them, the same bits
//   step       each rank gives the optimizer its own variables alone, always in the same order: so it keeps their state only
//   values     travel in rounds: in each, every rank brings a run of its own variables, by one allGatherV into memory that
//              the next round uses again
//   state      travels the same way when a checkpoint asks for the whole (optimizer-arrays.ts)
import type { Tensor, Variable } from '@tensorflow/tfjs-core';

import type { CallOptions } from '../communicator/calls/types.js';
import type { Communicator } from '../communicator/communicator.js';
import { GradlinkError, argumentError } from '../errors.js';
import { assignBySize } from './buckets/assign.js';
import { crossingCosts, ownValues } from './crossing.js';
import { readValues, writeValues } from './flat-weights.js';
import { stateListsOf } from './optimizer-arrays.js';
import { wrapper } from './optimizer-state.js';

/** An optimizer whose state is that of one rank's variables belongs to the shards that they are of. */
const holders = new WeakMap<object, Shards>();

export interface ShardOptions {
  /** False: every rank owns all. */
  readonly shard: boolean;
  /** So many bytes travel at once, and a variable more of each rank. */
  readonly capBytes: number;
  /** Whether values cross between device and host at once. */
  readonly gather?: boolean | undefined;
  readonly calls: CallOptions;
}

/** Values of some variables, one after the other. They are overwritten once the next are asked for. */
interface Round {
  readonly indices: readonly number[];
  readonly data: Float32Array;
}

export class Shards {
  /** Of each variable the rank that steps it. */
  readonly owners: readonly number[];
  /** The variables of this rank, by their indices. */
  readonly own: readonly number[];
  readonly #variables: readonly Variable[];
  readonly #comm: Communicator;
  readonly #options: ShardOptions;
  readonly #gather: boolean;
  /** Of each round, what each rank brings. */
  readonly #rounds: readonly (readonly (readonly number[])[])[];
  readonly #sent: Float32Array;
  readonly #came: Float32Array;

  constructor(variables: readonly Variable[], comm: Communicator, options: ShardOptions) {
    const { shard, capBytes } = options;
    const ranks = shard ? comm.size : 1;
    this.#variables = variables;
    this.#comm = comm;
    this.#options = options;
    this.#gather = options.gather ?? crossingCosts();
    this.owners = dealOut(
      variables.map(({ size }) => size),
      ranks,
    );
    const ownedBy = (rank: number) =>
      [...variables.keys()].filter((index) => this.owners[index] === rank);
    this.own = ownedBy(shard ? comm.rank : 0);
    const tensors = variables.map(({ size }) => ({ bytes: 4 * size }));
    const runs = Array.from({ length: ranks }, (_, rank) =>
      assignBySize(tensors, [capBytes / ranks], ownedBy(rank)),
    );
    const most = Math.max(...runs.map(({ length }) => length));
    this.#rounds = Array.from({ length: most }, (_, at) => runs.map((of) => of[at] ?? []));
    const room = (sizes: readonly number[]): Float32Array =>
      comm.allocShared('float32', this.areSeveral ? Math.max(0, ...sizes) : 0);
    this.#sent = room(this.#rounds.map((round) => this.#elements(round[comm.rank] ?? [])));
    this.#came = room(this.#rounds.map((round) => this.#elements(round.flat())));
  }

  /** Whether another rank owns anything. */
  get areSeveral(): boolean {
    return this.#options.shard && this.#comm.size > 1;
  }

  #elements(indices: readonly number[]): number {
    return indices.reduce((sum, index) => sum + this.#variables[index]!.size, 0);
  }

  /** Collective, after each rank's step: gives all variables the values that their owners have. */
  async spread(): Promise<void> {
    if (!this.areSeveral) return;
    for await (const { indices, data } of this.exchange((index) => this.#variables[index]!)) {
      const variables = indices.map((index) => this.#variables[index]!);
      writeValues(
        variables,
        data,
        this.#gather,
        (at) => this.owners[indices[at]!] !== this.#comm.rank,
      );
    }
  }

  /**
   * Collective. What each rank has for its own variables, on all ranks.
   *
   * @param read - of this rank's own, a tensor of as many elements as the variable has.
   */
  async *exchange(read: (index: number) => Tensor): AsyncGenerator<Round> {
    if (!this.areSeveral) {
      for (const index of this.own) yield { indices: [index], data: ownValues(read(index)) };
      return;
    }
    const { calls } = this.#options;
    for (const round of this.#rounds) {
      const counts = round.map((indices) => this.#elements(indices));
      const sent = this.#sent.subarray(0, counts[this.#comm.rank]);
      readValues(round[this.#comm.rank]!.map(read), sent, this.#gather);
      const indices = round.flat();
      const out = this.#came.subarray(0, this.#elements(indices));
      await this.#comm.allGatherV(sent, { counts, out, ...calls });
      yield { indices, data: out };
    }
  }

  /** Before a step: the optimizer's state is, or will be, that of this rank's own variables. */
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

  /** From here on the optimizer's state is that of this rank's own variables. */
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
    `${op}: expected an optimizer whose state is whole, got one with the state of this rank's variables; ${instead}`,
    { op, usable: true },
  );
}

/** An owner for each size: the largest first, each to the rank that has the least, of several the lowest. */
export function dealOut(sizes: readonly number[], ranks: number): number[] {
  const loads = Array.from({ length: ranks }, () => 0);
  const owners: number[] = [];
  for (const index of [...sizes.keys()].sort((a, b) => sizes[b]! - sizes[a]!)) {
    const rank = loads.indexOf(Math.min(...loads));
    owners[index] = rank;
    loads[rank]! += sizes[index]!;
  }
  return owners;
}
