// What ranks are at when one of them ends: endless calls of each kind, as source of a script that has `comm`, `name` (one
// for all ranks of a round) and `place` (how to join again).
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const training = pathToFileURL(join(import.meta.dirname, '../../../dist/tfjs.js')).href;

/**
 * `before`: what is made once. `turn`: what comes again and again. In each turn a rank needs every other, so that none
 * can miss that one has gone.
 */
export interface Loop {
  readonly before?: string;
  readonly turn: string;
}

const ring = `
  comm.setTopology(ringGraph(comm.size), { weighted: false });
  const data = new Float32Array(20_000).fill(1);`;

/** The calls of a communicator, by what they are. */
export const loops = {
  collectives: {
    before: `
      const n = 4096 * comm.size;
      const [data, wide, part] = [n, n * comm.size, n / comm.size].map((length) => new Float32Array(length));`,
    turn: `
      await comm.allReduce(data, { op: 'avg' });
      await comm.allGather(data, { out: wide });
      await comm.reduceScatter(data, { out: part });
      await comm.broadcast(data, { root: turns % comm.size });
      await Promise.all([comm.reduce(data, { root: 0 }), comm.allToAll(wide), comm.barrier()]);
      await comm.scan(part);`,
  },
  'blocking collectives': {
    before: `const data = new Float32Array(50_000);`,
    turn: `
      comm.allReduceSync(data, { op: 'avg' });
      comm.broadcastSync(data, { root: turns % comm.size });
      comm.barrierSync();
      await new Promise(setImmediate);`,
  },
  messages: {
    before: `
      // Pairs in one order everywhere: calls of a rank run one after the other.
      const pairs = [];
      for (let low = 0; low < comm.size; low += 1) {
        for (let high = low + 1; high < comm.size; high += 1) pairs.push([low, high]);
      }
      const mine = pairs.filter((pair) => pair.includes(comm.rank));
      const [out, into] = [0, 1].map(() => mine.map(() => new Float32Array(30_000)));`,
    turn: `
      await Promise.all(mine.flatMap(([low, high], at) => {
        const send = (to) => comm.send(out[at], { to });
        const receive = (from) => comm.receive(into[at], { from });
        return comm.rank === low ? [send(high), receive(high)] : [receive(low), send(low)];
      }));`,
  },
  neighbours: {
    before: ring,
    turn: `
      await comm.neighborAllReduce(data);
      await comm.neighborAllGather(data);
      await comm.barrier();`,
  },
  windows: {
    before: `${ring} const window = await comm.createWindow(data);`,
    turn: `
      await window.put();
      await window.accumulate();
      await window.update();
      await window.get();
      await window.withMutex(() => undefined);
      await comm.barrier();`,
  },
  buckets: {
    before: `
      const { GradientReducer } = await import(${JSON.stringify(training)});
      const shapes = [[300, 20], [5000], [1], [40, 40]];
      const gradients = shapes.map((shape, at) => ({ name: 'g' + at, shape }));
      const reducer = new GradientReducer(comm, gradients, { bucketCapBytes: 16_384 });
      const values = shapes.map((shape) => new Float32Array(shape.reduce((a, b) => a * b)));`,
    turn: `
      reducer.begin();
      values.forEach((value, at) => reducer.add(at, value));
      await reducer.finish();`,
  },
  'shared memory': {
    before: `const kept = comm.allocShared('float32', 100_000);`,
    turn: `
      const fresh = comm.allocShared('float32', 10_000);
      await comm.allReduce(kept, { op: 'avg' });
      await comm.allReduce(fresh);`,
  },
  split: {
    turn: `
      const part = await comm.split(0);
      await part.allReduce(new Float32Array(1000));
      await comm.barrier();
      await part.close();`,
  },
} as const satisfies Readonly<Record<string, Loop>>;

export type LoopName = keyof typeof loops;

export const loopNames = Object.keys(loops) as LoopName[];

/** The loop as a function of its communicator, which ends with the error of the first call that failed. */
export function sourceOf(name: LoopName, begun: string): string {
  const { before = '', turn }: Loop = loops[name];
  return `async (comm) => {
    try {
      ${before}
      for (let turns = 0; ; turns += 1) {
        ${turn}
        if (turns === 0) { ${begun} }
      }
    } catch (error) {
      return { ...plain(error), stack: error.code === undefined ? error.stack : undefined };
    }
  }`;
}
