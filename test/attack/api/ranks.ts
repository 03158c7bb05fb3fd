// What two ranks do with each other, on one thread: collectives, messages, neighbours, windows, parts.
import { setImmediate as turn } from 'node:timers/promises';

import { Communicator } from '../../../lib/index.js';
import type { NeighborWindow } from '../../../lib/index.js';
import { ringGraph } from '../../../lib/topology/index.js';
import type { Random } from '../support/random.js';
import { becomes, loose, right, same } from './call.js';
import type { Call, Family, Loose } from './call.js';

/** Only a wrong call is ended: a right one may wait for a busy machine. */
const wrongCallMs = 100;

let names = 0;

/** Whether it was refused at once, before it waits for anybody. */
async function earlyEnd(call: Promise<unknown>): Promise<'refused' | 'waits'> {
  const refused = call.then(
    () => 'waits' as const,
    () => 'refused' as const,
  );
  const waits = turn().then(() => turn('waits' as const));
  return Promise.race([refused, waits]);
}

interface Opened {
  readonly ranks: readonly Communicator[];
  readonly windows: readonly NeighborWindow<Float64Array>[];
}

async function open(): Promise<Opened> {
  const name = `attack-${String(process.pid)}-${String((names += 1))}`;
  const ranks = await Promise.all(
    [0, 1].map((rank) => Communicator.join({ name, rank, size: 2, threads: true })),
  );
  for (const one of ranks) one.setTopology(ringGraph(2));
  const windows = await Promise.all(
    ranks.map((one) => one.createWindow(new Float64Array(4), { zeroInit: true })),
  );
  return { ranks, windows };
}

export class Ranks implements Family {
  #opened: Opened;
  #wrong = false;

  private constructor(opened: Opened) {
    this.#opened = opened;
  }

  static async open(): Promise<Ranks> {
    return new Ranks(await open());
  }

  next(random: Random, wrong: boolean): Call {
    this.#wrong = wrong;
    return random.pick([this.#reduced, this.#sent, this.#averaged, this.#gossip, this.#put, this.#split]).call(this, random); // prettier-ignore
  }

  /** The first rank's call, which may be wrong, and the second's, which answers it unless it was refused. */
  async #both(first: () => unknown, second: () => unknown): Promise<unknown[]> {
    const { ranks } = this.#opened;
    const one = Promise.resolve().then(first);
    if ((await earlyEnd(one)) === 'refused') return [await one];
    const two = Promise.resolve().then(second);
    const timer = this.#wrong
      ? setTimeout(() => {
          for (const each of ranks) each.abort('it was wrong');
        }, wrongCallMs)
      : undefined;
    const [mine, other] = await Promise.allSettled([one, two]);
    clearTimeout(timer);
    if (mine.status === 'rejected') throw mine.reason;
    if (other.status === 'rejected') throw other.reason;
    return [mine.value, other.value];
  }

  #pair(): [Loose, Communicator] {
    return [loose(this.#opened.ranks[0]!), this.#opened.ranks[1]!];
  }

  #reduced(random: Random): Call {
    const [a, b] = this.#pair();
    const count = 1 + random.int(30);
    const op = random.pick(['sum', 'max'] as const);
    const mine = Float64Array.from({ length: count }, () => random.int(9));
    const others = Float64Array.from({ length: count }, () => random.int(9));
    const expected = Array.from(mine, (x, i) =>
      op === 'sum' ? x + others[i]! : Math.max(x, others[i]!),
    );
    const signal = new AbortController().signal;
    return {
      name: 'Communicator.allReduce',
      args: [mine, { op, signal }],
      run: (...args) =>
        this.#both(
          () => a['allReduce']!(...args),
          () => b.allReduce(others, { op }),
        ),
      check: (results) => {
        for (const one of results as unknown[]) same(one, expected, 'allReduce of ranks');
      },
    };
  }

  #sent(random: Random): Call {
    const [a, b] = this.#pair();
    const tag = random.int(5);
    const data = Int32Array.from({ length: 1 + random.int(20) }, () => random.int(100));
    const into = new Int32Array(data.length);
    const receives = random.chance(0.5);
    return {
      name: receives ? 'Communicator.receive' : 'Communicator.send',
      args: receives ? [into, { from: 1, tag }] : [data, { to: 1, tag }],
      run: (...args) =>
        receives
          ? this.#both(
              () => a['receive']!(...args),
              () => b.send(data, { to: 0, tag }),
            )
          : this.#both(
              () => a['send']!(...args),
              () => b.receive(into, { from: 0, tag }),
            ),
      check: becomes(into, [...data], 'what was received'),
    };
  }

  #averaged(random: Random): Call {
    const [a, b] = this.#pair();
    const mine = Float64Array.from({ length: 1 + random.int(10) }, () => random.int(8));
    const others = Float64Array.from(mine, () => random.int(8));
    const expected = Array.from(mine, (x, i) => 0.5 * x + 0.5 * others[i]!);
    const weights = { selfWeight: 0.5, srcWeights: { 1: 0.5 }, dstWeights: { 1: 1 } };
    const theirs = { selfWeight: 0.5, srcWeights: { 0: 0.5 }, dstWeights: { 0: 1 } };
    return {
      name: 'Communicator.neighborAllReduce',
      args: [mine, weights],
      run: (...args) =>
        this.#both(
          () => a['neighborAllReduce']!(...args),
          () => b.neighborAllReduce(others, theirs),
        ),
      check: (results) => {
        same((results as unknown[])[0], expected, 'neighborAllReduce');
      },
    };
  }

  #gossip(random: Random): Call {
    const [a, b] = this.#pair();
    const mine = Float64Array.from({ length: 1 + random.int(10) }, () => random.int(8));
    const others = Float64Array.from(mine, () => random.int(8));
    const gathers = random.chance(0.5);
    const both = Array.from(mine, (x, i) => (x + others[i]!) / 2);
    const name = gathers ? 'neighborAllGather' : 'pairGossip';
    const expected = gathers ? [...others] : both;
    return {
      name: `Communicator.${name}`,
      args: gathers ? [mine, { srcRanks: [1], dstRanks: [1] }] : [mine, { peer: 1 }],
      run: (...args) =>
        this.#both(
          () => a[name]!(...args),
          () =>
            gathers
              ? b.neighborAllGather(others, { srcRanks: [0], dstRanks: [0] })
              : b.pairGossip(others, { peer: 0 }),
        ),
      check: (results) => {
        same((results as unknown[])[0], expected, name);
      },
    };
  }

  #put(random: Random): Call {
    const [mine, theirs] = this.#opened.windows as [NeighborWindow<Float64Array>, NeighborWindow<Float64Array>]; // prettier-ignore
    const values = Float64Array.from({ length: 4 }, () => random.int(8));
    const weight = random.pick([0.5, 1, 2]);
    theirs.array.fill(0);
    const sync = random.chance(0.5);
    const name = sync ? 'putSync' : 'put';
    return random.pick<Call>([
      {
        name: `NeighborWindow.${name}`,
        args: [values, { dstWeights: { 1: weight } }],
        run: async (...args) => {
          await loose(mine)[name]!(...args);
          return theirs.update({ selfWeight: 1, srcWeights: { 0: 1 }, reset: true });
        },
        check: (array) => {
          same(
            array,
            Array.from(values, (x) => x * weight),
            'a window',
          );
        },
      },
      {
        name: 'NeighborWindow.withMutex',
        args: [() => 7, { forSelf: true, ranks: [1] }],
        run: (...args) => loose(mine)['withMutex']!(...args),
        check: (result) => {
          right(result === 7, 'withMutex');
        },
      },
      {
        name: 'NeighborWindow.update',
        args: [{ selfWeight: 1, srcWeights: { 1: 1 }, out: new Float64Array(4) }],
        run: (...args) => loose(mine)['update']!(...args),
      },
    ]);
  }

  #split(random: Random): Call {
    const [a, b] = this.#pair();
    const color = random.int(3);
    return {
      name: 'Communicator.split',
      args: [color, random.int(5), { timeoutMs: 20_000 }],
      run: async (...args) => {
        const made = await this.#both(
          () => a['split']!(...args),
          // A meeting that the first has left goes on until its deadline.
          () => b.split(color, 1, { timeoutMs: this.#wrong ? 1000 : 30_000 }),
        );
        const parts = (made as (Communicator | null)[]).filter((part) => part !== null);
        await Promise.all(parts.map((part) => part.close()));
        return parts.map((part) => part.size);
      },
      check: (sizes) => {
        same(sizes, [2, 2], 'split');
      },
    };
  }

  async renew(): Promise<void> {
    await this.close();
    this.#opened = await open();
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.ranks.map((one) => one.close()));
  }
}
