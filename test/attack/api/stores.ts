// A key-value store against a table of what it should hold.
import { KVStore, SGD } from '../../../lib/index.js';
import type { Random } from '../support/random.js';
import { becomes, loose, right } from './call.js';
import type { Call, Family } from './call.js';

const devices = 2;

export class Stores implements Family {
  #kv: KVStore;
  readonly #held = new Map<string, number[]>();
  #keys = 0;

  private constructor(
    kv: KVStore,
    private readonly open: () => Promise<KVStore>,
  ) {
    this.#kv = kv;
  }

  static async open(make: () => Promise<KVStore>): Promise<Stores> {
    return new Stores(await make(), make);
  }

  static local(): Promise<Stores> {
    let made = 0;
    return Stores.open(() =>
      KVStore.create((made += 1) % 2 === 0 ? 'local' : 'device', { devices }),
    );
  }

  next(random: Random): Call {
    const kv = loose(this.#kv);
    if (this.#held.size === 0 || random.chance(0.1)) return this.#init(random);
    const key = random.pick([...this.#held.keys()]);
    const before = this.#held.get(key)!;
    const count = before.length;
    const values = Array.from({ length: this.#kv.devices.length }, () =>
      Float32Array.from({ length: count }, () => random.int(9)),
    );
    const sum = before.map((_, i) => values.reduce((all, one) => all + one[i]!, 0));
    const out = new Float32Array(count);
    const priority = random.int(5);
    const assigned = () => this.#held.set(key, sum);
    const calls: Call[] = [
      {
        name: 'KVStore.push',
        args: [key, values, { priority }],
        run: async (...args) => {
          await kv['push']!(...args);
          assigned();
          await this.#kv.pull(key, out);
        },
        check: becomes(out, sum, 'push'),
      },
      {
        name: 'KVStore.pull',
        args: [key, out, { priority }],
        run: (...args) => kv['pull']!(...args),
        check: becomes(out, before, 'pull'),
      },
      {
        name: 'KVStore.pushPull',
        args: [[key], [values], [out], { priority }],
        run: async (...args) => {
          await kv['pushPull']!(...args);
          assigned();
        },
        check: becomes(out, sum, 'pushPull'),
      },
      {
        name: 'KVStore.rowSparsePull',
        args: [key, out, [0], {}],
        run: (...args) => kv['rowSparsePull']!(...args),
        check: becomes(
          out,
          before.map((x, i) => (i === 0 ? x : 0)),
          'rowSparsePull',
        ),
      },
      this.#stepped(key, before, random),
      {
        name: 'KVStore.isCapable',
        args: ['optimizer'],
        run: (...args) => kv['isCapable']!(...args),
        check: (result) => {
          right(result === true, 'isCapable');
        },
      },
    ];
    return random.pick([...calls, ...this.#rest(random, key, before)]);
  }

  /** What is called once in a while. */
  #rest(random: Random, key: string, before: readonly number[]): Call[] {
    const kv = loose(this.#kv);
    const out = new Float32Array(before.length);
    const other = `key-${String((this.#keys += 1))}`;
    const value = Float32Array.from({ length: 1 + random.int(8) }, () => random.int(9));
    const copy = new Float32Array(value.length);
    const text = JSON.stringify({ seen: random.int(9) });
    return [
      {
        name: 'KVStore.broadcast',
        args: [other, value, copy, { priority: 1, shape: [value.length] }],
        run: async (...args) => {
          await kv['broadcast']!(...args);
          this.#held.set(other, [...value]);
        },
        check: becomes(copy, [...value], 'broadcast'),
      },
      {
        name: 'KVStore.pull of a list',
        args: [[key], [[out]]],
        run: (...args) => kv['pull']!(...args),
        check: becomes(out, before, 'pull of a list'),
      },
      {
        name: 'KVStore.setLearningRate',
        args: [0.5],
        run: async (...args) => {
          await this.#kv.setOptimizer(new SGD({ learningRate: 1 }));
          try {
            await kv['setLearningRate']!(...args);
            await this.#kv.pushPull(key, new Float32Array(before.length).fill(2), out);
            this.#held.set(key, [...out]);
          } finally {
            await this.#kv.setOptimizer(null);
          }
        },
        check: becomes(
          out,
          before.map((x) => x - 1),
          'a step of half the rate',
        ),
      },
      this.#kv.numServers > 0
        ? {
            name: 'KVStore.sendCommandToServers',
            args: [text],
            run: (...args) => kv['sendCommandToServers']!(...args),
          }
        : {
            name: 'KVStore.setUpdater',
            args: [(_: string, received: Float32Array, stored: Float32Array) => stored.set(received.map((x) => -x))], // prettier-ignore
            run: async (...args) => {
              await kv['setUpdater']!(...args);
              try {
                await this.#kv.pushPull(key, new Float32Array(before.length).fill(2), out);
                this.#held.set(key, [...out]);
              } finally {
                await this.#kv.setUpdater(null);
              }
            },
            check: becomes(
              out,
              before.map(() => -2),
              'an updater',
            ),
          },
      {
        name: 'KVStore.setGradientCompression',
        args: [{ type: '2bit', threshold: 0.5 }],
        run: async (...args) => {
          const own = await KVStore.create('device', { devices: 1 });
          try {
            await loose(own)['setGradientCompression']!(...args);
          } finally {
            await own.close();
          }
        },
      },
    ];
  }

  #init(random: Random): Call {
    const key = `key-${String((this.#keys += 1))}`;
    const value = Float32Array.from({ length: 1 + random.int(16) }, () => random.int(9));
    const shape = [value.length];
    return {
      name: 'KVStore.init',
      args: [key, value, { shape }],
      run: async (...args) => {
        await loose(this.#kv)['init']!(...args);
        this.#held.set(key, [...value]);
      },
      check: () => undefined,
    };
  }

  /** One step of an optimizer in the store, which afterwards has none. */
  #stepped(key: string, before: readonly number[], random: Random): Call {
    const rate = random.pick([0.5, 0.25]);
    const gradient = Float32Array.from(before, () => random.int(9));
    const expected = before.map((x, i) => x - rate * gradient[i]!);
    const out = new Float32Array(before.length);
    return {
      name: 'KVStore.setOptimizer',
      args: [new SGD({ learningRate: rate })],
      run: async (...args) => {
        await loose(this.#kv)['setOptimizer']!(...args);
        await this.#kv.pushPull(key, gradient, out);
        await this.#kv.setOptimizer(null);
        this.#held.set(key, [...out]);
      },
      check: becomes(out, expected, 'an optimizer in the store'),
    };
  }

  async renew(): Promise<void> {
    await this.#kv.close();
    this.#kv = await this.open();
    this.#held.clear();
  }

  close(): Promise<void> {
    return this.#kv.close();
  }
}
