// Collectives of a local group, against plain loops.
import { Communicator } from '../../../lib/index.js';
import type { Random } from '../support/random.js';
import { loose, same } from './call.js';
import type { Call, Family } from './call.js';
import { OwnError } from './defects.js';

export const arrayTypes = {
  int8: Int8Array,
  uint8: Uint8Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
} as const;
type Name = keyof typeof arrayTypes;
export const typeNames = Object.keys(arrayTypes) as Name[];
const isWide = (type: Name) => type === 'int64' || type === 'uint64';

/** Small whole numbers, whose sums and products fit every type. */
export function drawn(random: Random, type: Name, count: number): ArrayLike<number | bigint> {
  const numbers = Array.from({ length: count }, () => random.int(4));
  const values = isWide(type) ? numbers.map(BigInt) : numbers;
  return new (arrayTypes[type] as unknown as new (from: unknown) => Float32Array)(values);
}

const zeros = (type: Name, count: number) => new arrayTypes[type](count);
const plain = (array: ArrayLike<number | bigint>) => Array.from(array, Number);

const combine: Readonly<Record<string, (values: number[]) => number>> = {
  sum: (values) => values.reduce((a, b) => a + b, 0),
  prod: (values) => values.reduce((a, b) => a * b, 1),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  avg: (values) => values.reduce((a, b) => a + b, 0) / values.length,
};

interface Drawn {
  readonly n: number;
  readonly count: number;
  readonly root: number;
  readonly reduced: (ranks: number) => number[];
  readonly inputs: readonly number[][];
}

const block = (values: readonly number[], rank: number, count: number) =>
  values.slice(rank * count, (rank + 1) * count);

/** What each collective takes (blocks a rank), and what rank r has in the end; undefined: not said. */
const rules: Readonly<
  Record<
    string,
    {
      in: 'one' | 'all';
      out: 'one' | 'all';
      reduces?: true;
      root?: 'in' | 'out';
      result: (d: Drawn, rank: number) => number[] | undefined;
    }
  >
> = {
  allReduce: { in: 'one', out: 'one', reduces: true, result: (d) => d.reduced(d.n) },
  reduce: { in: 'one', out: 'one', reduces: true, root: 'out', result: (d) => d.reduced(d.n) },
  broadcast: { in: 'one', out: 'one', root: 'in', result: (d) => d.inputs[d.root] },
  allGather: { in: 'one', out: 'all', result: (d) => d.inputs.flat() },
  reduceScatter: {
    in: 'all',
    out: 'one',
    reduces: true,
    result: (d, rank) => block(d.reduced(d.n), rank, d.count),
  },
  allToAll: {
    in: 'all',
    out: 'all',
    result: (d, rank) => d.inputs.flatMap((from) => block(from, rank, d.count)),
  },
  gather: { in: 'one', out: 'all', root: 'out', result: (d) => d.inputs.flat() },
  scan: { in: 'one', out: 'one', reduces: true, result: (d, rank) => d.reduced(rank + 1) },
  exscan: {
    in: 'one',
    out: 'one',
    reduces: true,
    result: (d, rank) => (rank === 0 ? undefined : d.reduced(rank)),
  },
};

export class LocalCollectives implements Family {
  #group = Communicator.local(2);

  next(random: Random): Call {
    const group = this.#group;
    const n = group.size;
    const sync = random.chance(0.5);
    if (random.chance(0.03)) return this.#misc(random);
    const op = random.pick(Object.keys(rules));
    const rule = rules[op]!;
    const type = random.pick(typeNames);
    const count = random.chance(0.05) ? 20_000 : random.int(20);
    const root = random.int(n);
    const scanning = op.endsWith('scan');
    const floats = type.startsWith('float') && !scanning;
    const reduceOp = random.pick(['sum', 'prod', 'min', 'max', ...(floats ? ['avg'] : [])]);
    const given = Array.from({ length: n }, () =>
      drawn(random, type, rule.in === 'all' ? n * count : count),
    );
    const inputs = given.map(plain);
    const reduced = (ranks: number) =>
      inputs[0]!.map((_, i) => combine[reduceOp]!(inputs.slice(0, ranks).map((one) => one[i]!)));
    const facts: Drawn = { n, count, root, reduced, inputs };
    const length = rule.out === 'all' ? n * count : count;
    const withOut = op !== 'broadcast' && random.chance(0.5);
    const out =
      rule.root === 'out'
        ? zeros(type, length)
        : Array.from({ length: n }, () => zeros(type, length));
    const options = {
      ...(rule.reduces ? { op: reduceOp } : {}),
      ...(rule.root === undefined ? {} : { root }),
      ...(withOut ? { out } : {}),
      ...(random.chance(0.3) ? { timeoutMs: 5000 } : {}),
      ...(!sync && random.chance(0.3) ? { signal: new AbortController().signal } : {}),
      ...(random.chance(0.2) ? { dtype: type } : {}),
    };
    const name = sync ? `${op}Sync` : op;
    return {
      name: `LocalGroup.${name}`,
      args: [given, options],
      run: (...args) => loose(group)[name]!(...args),
      check: (result) => {
        const results = rule.root === 'out' ? [result] : (result as unknown[]);
        results.forEach((one, i) => {
          const expected = rule.result(facts, rule.root === 'out' ? root : i);
          if (expected !== undefined) same(one, expected, `${name} of ${type}, ${reduceOp}`);
        });
      },
    };
  }

  #misc(random: Random): Call {
    const group = loose(this.#group);
    const type = random.pick(typeNames);
    const count = random.int(100);
    return random.pick<Call>([
      {
        name: 'barrierSync',
        args: [{ timeoutMs: 1000 }],
        run: (...a) => group['barrierSync']!(...a),
      },
      {
        name: 'Communicator.local',
        args: [1 + random.int(4)],
        run: async (...a) => {
          const made = loose(Communicator)['local']!(...a) as ReturnType<typeof Communicator.local>;
          await made.close();
        },
      },
      {
        name: 'allocShared',
        args: [type, count],
        run: (...a) => {
          // Gigabytes that the machine has are no defect, but they take seconds.
          if (a[1] === 2 ** 31) throw new OwnError('not tried');
          return group['allocShared']!(...a);
        },
        check: (made) => {
          same(made, new Array<number>(count).fill(0), 'allocShared');
        },
      },
    ]);
  }

  async renew(): Promise<void> {
    await this.#group.close();
    this.#group = Communicator.local(1 + ((this.#group.size + 1) % 4));
  }

  close(): Promise<void> {
    return this.#group.close();
  }
}
