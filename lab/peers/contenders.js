// Who is measured. A contender says why it cannot run here (then it is waived), what it can do, and the programs of one job.
import { join } from 'node:path';
import { answers } from './children.js';
import { messageKinds, openMpi } from './mpis.js';
import { builtWaived, here, list, work } from './work.js';

/**
 * @typedef {{ranks: number, sizes: number[], places: ('in' | 'out')[], seconds: number}} Case
 * @typedef {object} Contender
 * @property {string} id
 * @property {string} label
 * @property {() => string | undefined} waived the reason, where it cannot run here
 * @property {string[]} places
 * @property {(wanted: Case) => import('./children.js').Program[]} programs
 * @property {(sizes: number[]) => number[]} [sizesOf] of a case's sizes those it takes part in
 * @property {boolean} [warmed] false: no short run goes before, `estimate` says what it takes
 * @property {(machine: {touchRate: number}) => number} [estimate] seconds
 * @property {(bytes: number) => number} [calls] of a program that decides itself how often it calls
 * @property {(line: object, run: import('./collect.js').Collected) => void} [keep] what its lines are, where they are no records
 */

/** @returns {Contender} */
function gradlink(memory, neighbors = false) {
  const label = memory === 'plain' ? 'gradlink' : 'gradlink, allocShared';
  return {
    id: `gradlink-${memory}${neighbors ? '-neighbors' : ''}`,
    label: neighbors ? `${label}, one neighbour` : label,
    waived: () => undefined,
    places: ['in', 'out'],
    programs: ({ ranks, sizes, places, seconds }) => [
      {
        command: process.execPath,
        args: [
          ...[here('../../bench/gradlink.js'), 'launch', '-n', String(ranks)],
          ...[process.execPath, here('gradlink-ranks.js')],
          ...[memory, list(sizes), list(places), String(seconds)],
          ...(neighbors ? ['neighbors'] : []),
        ],
      },
    ],
  };
}

/** Messages between two ranks, as `gradlink pairs` sends them. @type {Contender} */
export const messages = {
  id: 'gradlink-messages',
  label: 'gradlink, messages',
  waived: () => undefined,
  places: messageKinds,
  // It sends as many messages of a size as `gradlink pairs` does.
  calls: (bytes) => (bytes <= 8192 ? 8000 : 1600),
  programs: ({ ranks, sizes, places }) => [
    {
      command: process.execPath,
      args: [
        ...[here('../../bench/gradlink.js'), 'launch', '-n', String(ranks)],
        ...[process.execPath, here('gradlink-messages.js'), list(sizes), list(places)],
      ],
    },
  ],
};

// The distribution's Python first: apt puts torch there, and another one may come before it in PATH.
const pythons = ['/usr/bin/python3', 'python3'];
const hasGloo = ['-c', 'import torch.distributed as d; assert d.is_available()'];
let python;
let jobs = 0;

/** @type {Contender} */
export const gloo = {
  id: 'gloo',
  label: 'Gloo (torch, loopback)',
  waived: () => {
    python ??= pythons.find((command) => answers(command, hasGloo));
    return python === undefined
      ? 'torch.distributed cannot be imported (apt-get install python3-torch)'
      : undefined;
  },
  places: ['in'],
  programs: ({ ranks, sizes, seconds }) => {
    const meeting = join(work, `gloo-${++jobs}`);
    return Array.from({ length: ranks }, (_, rank) => ({
      command: python,
      args: [here('gloo_allreduce.py'), list(sizes), String(seconds), meeting],
      env: { RANK: String(rank), WORLD_SIZE: String(ranks), GLOO_SOCKET_IFNAME: 'lo' },
    }));
  },
};

/**
 * The all-reduce that a server of language models brings for its processes on one host: shm_allreduce.cc, built with it. It
 * spins without end, so that it takes part only where each rank has a core.
 * @returns {Contender}
 */
function inSharedMemory(id, name) {
  const variable = `GRADLINK_PEERS_${id.toUpperCase()}`;
  return {
    id,
    label: `${name}, shared memory`,
    waived: () => builtWaived(variable, 'build-shm.sh'),
    places: ['in'],
    programs: ({ ranks, sizes, seconds }) => {
      const job = `gradlink-peers-${process.pid}-${++jobs}`;
      return Array.from({ length: ranks }, (_, rank) => ({
        command: process.env[variable] ?? '',
        args: [list(sizes), String(seconds), job],
        env: { RANK: String(rank), WORLD_SIZE: String(ranks), OMP_NUM_THREADS: '1' },
      }));
    },
  };
}

export const serving = [
  inSharedMemory('deepspeed', 'DeepSpeed'),
  inSharedMemory('sglang', 'sglang'),
  inSharedMemory('vllm', 'vLLM'),
];

export const plain = gradlink('plain');
export const shared = gradlink('shared');

/** Averaging with one neighbour a call: ours, and MPI_Neighbor_alltoall with a sum in C. @type {Contender[]} */
export const neighbors = [
  gradlink('plain', true),
  gradlink('shared', true),
  withNeighbors(openMpi('openmpi-neighbors', 'Open MPI, MPI_Neighbor_alltoall')),
];

function withNeighbors(contender) {
  const programs = (wanted) =>
    contender
      .programs(wanted)
      .map(({ args, ...rest }) => ({ ...rest, args: [...args, 'neighbors'] }));
  return { ...contender, programs };
}
