// Scripts in which arrays lose their memory while calls use it: transferred, posted, grown, shrunk, collected.
import type { Random } from './random.js';

/** A call that uses `data`, and one that lets it end; `ones()` is an array of its own. */
const calls = {
  allReduce: ['a.allReduce(data)', 'b.allReduce(ones())'],
  'allReduce into another': ['a.allReduce(ones(), { out: data })', 'b.allReduce(ones())'],
  reduce: ['a.reduce(data, { root: 0 })', 'b.reduce(ones(), { root: 0 })'],
  broadcast: ['a.broadcast(data, { root: 1 })', 'b.broadcast(ones(), { root: 1 })'],
  'broadcast from it': ['a.broadcast(data, { root: 0 })', 'b.broadcast(ones(), { root: 0 })'],
  scan: ['a.scan(data)', 'b.scan(ones())'],
  receive: ['a.receive(data, { from: 1 })', 'b.send(ones(), { to: 0 })'],
  send: ['a.send(data, { to: 1 })', 'b.receive(ones(), { from: 0 })'],
  neighborAllReduce: [
    'a.neighborAllReduce(data, weights(1))',
    'b.neighborAllReduce(ones(), weights(0))',
  ],
  pairGossip: ['a.pairGossip(data, { peer: 1 })', 'b.pairGossip(ones(), { peer: 0 })'],
  put: ['windows[0].put(data)', 'windows[1].update()'],
  update: ['windows[0].update({ out: data })', 'windows[1].put()'],
  push: [`kv.push('w', data)`, `kv.pull('w', ones())`],
  pull: [`kv.pull('w', data)`, `kv.push('w', ones())`],
} as const;

/** Where the memory comes from. */
const memories = {
  plain: 'ones()',
  'part of it': 'new Float32Array(new ArrayBuffer(4 * n + 64), 32, n).fill(1)',
  resizable: 'new Float32Array(new ArrayBuffer(4 * n, { maxByteLength: 8 * n }), 0, n).fill(1)',
  'length-tracking': 'new Float32Array(new ArrayBuffer(4 * n, { maxByteLength: 8 * n })).fill(1)',
  shared: 'new Float32Array(new SharedArrayBuffer(4 * n)).fill(1)',
  wasm: 'new Float32Array(memory.buffer, 0, n).fill(1)',
  pooled: 'new Float32Array(Buffer.from(ones().buffer).buffer).fill(1)',
  allocated: `group.allocShared('float32', n).fill(1)`,
} as const;

/** How it is lost. */
const losses = {
  clone: 'structuredClone(buffer, { transfer: [buffer] });',
  post: `
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(data, [buffer]);
    port1.close(); port2.close();`,
  transfer:
    'buffer.transfer ? buffer.transfer(8) : structuredClone(buffer, { transfer: [buffer] });',
  shrink: 'buffer.resize(0);',
  grow: 'memory.grow(1);',
  drop: '',
} as const;

const turns = (random: Random): number => (random.chance(0.5) ? 0 : random.int(6));

/** A script that loses `count` arrays, and reports how many, and whose memory was harmed. */
export function transfers(random: Random, count: number): string {
  const each = Array.from({ length: count }, () => {
    const [call, memory, loss] = [calls, memories, losses].map((choices) =>
      random.pick(Object.keys(choices)),
    ) as [keyof typeof calls, keyof typeof memories, keyof typeof losses];
    const [mine, theirs] = calls[call];
    return `await attack(${JSON.stringify(`${call}, ${memory}, ${loss}`)}, async ({ group, a, b, kv, windows, memory }) => {
      let data = ${memories[memory]};
      let buffer = data.buffer;
      const pending = settled(() => ${mine});
      let refused = false;
      void pending.then((told) => { refused = told !== 'done'; });
      await turn(1);
      await turn(${String(turns(random))});
      const lost = outcome((async () => { ${losses[loss]} })());
      data = undefined; buffer = undefined;
      const told = await lost;
      ${random.chance(0.8) ? 'await collectAll();' : ''}
      const others = [sevens(), sevens(), sevens()];
      await turn(${String(turns(random))});
      // Nobody comes to a call that was refused.
      if (!refused) await settled(() => ${theirs});
      const first = await pending;
      return { told, first, others };
    });`;
  });
  return `
    import { setFlagsFromString } from 'node:v8';
    import { runInNewContext } from 'node:vm';
    import { MessageChannel } from 'node:worker_threads';
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const n = ${String(random.pick([1000, 100_000, 1 << 20]))};
    const turn = async (count) => { for (; count > 0; count -= 1) await new Promise(setImmediate); };
    const collectAll = async () => { for (let i = 0; i < 3; i += 1) { collect(); await turn(1); } };
    const ones = () => new Float32Array(n).fill(1);
    const sevens = () => new Float32Array(n).fill(7);
    const weights = (rank) => ({ selfWeight: 0.5, srcWeights: { [rank]: 0.5 }, dstWeights: { [rank]: 1 } });
    // A call that is refused at once is as good as one that fails later.
    const settled = async (call) => {
      try { await call(); return 'done'; } catch (error) {
        if (error.code === undefined) throw error;
        return error.code;
      }
    };
    const counts = { transfers: 0, refused: 0, harmed: [] };
    const attack = async (what, run) => {
      const group = Communicator.local(2);
      const [a, b] = await group.openRanks();
      const kv = await KVStore.create('local', { devices: 1 });
      await kv.init('w', ones());
      for (const one of [a, b]) one.setTopology(ringGraph(2), { weighted: false });
      const windows = await Promise.all([a, b].map((one) => one.createWindow(ones())));
      const memory = new WebAssembly.Memory({ initial: Math.ceil((4 * n) / 65536) + 1, maximum: 4096 });
      say(what);
      const { told, first, others } = await run({ group, a, b, kv, windows, memory });
      say('  ' + JSON.stringify([told, first]));
      if (told === 'done') counts.transfers += 1; else counts.refused += 1;
      if (!others.every((one) => one.every((x) => x === 7))) counts.harmed.push(what);
      await Promise.all([a.close(), b.close(), kv.close()]);
    };
    ${each.join('\n')}
    report(counts);
  `;
}
