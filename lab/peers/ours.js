// What is measured of gradlink beside the peers: one process with all ranks beside the bare loop, the machine's memory, the cost
// of JavaScript, the share of the memory's bandwidth that `measure` reaches, and bare loops beside its store and the
// neighbours.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const node = (file, ...args) => ({ command: process.execPath, args: [here(file), ...args] });
const always = () => undefined;

/** @typedef {import('./contenders.js').Contender} Contender */

/** local(k) and the loop, turn by turn. @type {Contender} */
export const local = {
  id: 'local',
  label: 'gradlink, one process, and the bare loop',
  waived: always,
  places: ['in', 'out'],
  programs: ({ ranks, sizes, places, seconds }) => [
    node('in-process.js', String(ranks), sizes.join(','), places.join(','), String(seconds)),
  ],
};

/** @type {Contender} */
export const memory = {
  id: 'memory',
  label: 'memory bandwidth, bare loops',
  waived: always,
  places: ['in'],
  programs: ({ sizes, seconds }) => [node('memory-loops.js', String(sizes[0]), String(seconds))],
  keep: (line, run) => run.memory.push(line),
};

/** An import counts once, so that each of its samples is a process. @type {Contender} */
export const overhead = {
  id: 'overhead',
  label: 'cost of JavaScript',
  waived: always,
  places: ['in'],
  programs: ({ seconds }) => [node('overhead.js', seconds < 0.01 ? '1000' : '100000')],
  keep: (line, run) => {
    for (const name of ['importSeconds', 'syncSeconds', 'awaitedSeconds']) {
      (run.overhead[name] ??= []).push(line[name]);
    }
  },
};

const networks = {
  resnet: ['--network', 'resnet', '--num-layers', '50'],
  'inception-v3': ['--network', 'inception-v3', '--image-shape', '3,299,299'],
};

// Four devices' gradients and results, and what checks them; drawing them is the rest.
const measuredBytes = 3e9;
const measuredSeconds = 20;

/** What `measure` reaches of its bound. @type {Contender[]} */
export const measured = Object.entries(networks).map(([network, options]) => ({
  id: network,
  label: `gradlink measure, ${network}`,
  waived: always,
  places: ['in'],
  // A short run of it is nearly as long as a long one.
  warmed: false,
  estimate: ({ touchRate }) => measuredSeconds + measuredBytes / touchRate,
  programs: () => [node('measure-share.js', network, ...options)],
  keep: (line, run) => {
    run.store[line.network] = line.share;
  },
}));

/** A program of native/test/benchmarks: what `npm test` builds. */
const benchmark = (name) => {
  const command = here(`../../build/cmake/${name}_benchmark`);
  return {
    waived: () => (existsSync(command) ? undefined : `${name}_benchmark is not built (npm test)`),
    program: (...args) => ({ command, args }),
  };
};

const neighborsBenchmark = benchmark('neighbors');

/** What an average with one neighbour must move beside an all-reduce: bare loops of both. @type {Contender} */
export const neighborsLoop = {
  id: 'bare-neighbors',
  label: 'bare loops of an average and of an all-reduce',
  waived: neighborsBenchmark.waived,
  places: ['in', 'out'],
  programs: ({ sizes, places, seconds }) => [
    neighborsBenchmark.program(sizes.join(','), places.join(','), String(seconds)),
  ],
};

const storeBenchmark = benchmark('device_store');

/** The store of `measure` on 4 CPU devices, beside a bare loop that does the same reads and writes. @type {Contender} */
export const storeLoop = {
  id: 'loop',
  label: 'the device store and a bare loop',
  waived: storeBenchmark.waived,
  places: ['in'],
  warmed: false,
  estimate: ({ touchRate }) => measuredSeconds + measuredBytes / touchRate,
  programs: () => [storeBenchmark.program()],
  keep: (line, run) => {
    if (line.way === 'push, then pull') run.store.loop = line.bareOverOwn;
  },
};
