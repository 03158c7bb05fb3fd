// Collectives of a local group, against plain loops.
import { Communicator } from '../../../lib/index.js';
import { methods, reduced, rules, type Facts } from '../../support/collective-rules.js';
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

export class LocalCollectives implements Family {
  #group = Communicator.local(2);

  next(random: Random): Call {
    const group = this.#group;
    const n = group.size;
    const sync = random.chance(0.5);
    if (random.chance(0.03)) return this.#misc(random);
    const op = random.pick(methods.filter((one) => one !== 'scatter'));
    const rule = rules[op];
    const type = random.pick(typeNames);
    const count = random.chance(0.05) ? 20_000 : random.int(20);
    const root = random.int(n);
    const ops = rule.ops ?? ['sum'];
    const reduceOp = random.pick(ops.filter((one) => one !== 'avg' || type.startsWith('float')));
    const given = Array.from({ length: n }, () =>
      drawn(random, type, rule.in === 'all' ? n * count : count),
    );
    const inputs = given.map(plain);
    const facts: Facts = {
      n,
      count,
      root,
      inputs,
      reduced: (ranks) => reduced(reduceOp, inputs.slice(0, ranks)),
    };
    const length = rule.out === 'all' ? n * count : count;
    const withOut = op !== 'broadcast' && random.chance(0.5);
    const out =
      rule.root === 'out'
        ? zeros(type, length)
        : Array.from({ length: n }, () => zeros(type, length));
    const options = {
      ...(rule.ops === undefined ? {} : { op: reduceOp }),
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
