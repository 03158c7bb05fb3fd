// Who is measured. A contender says why it cannot run here (then it is waived), what it can do, and the programs of one job.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answers } from './children.js';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'gradlink-peers-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

/**
 * @typedef {{ranks: number, sizes: number[], places: ('in' | 'out')[], seconds: number}} Case
 * @typedef {object} Contender
 * @property {string} id
 * @property {string} label
 * @property {() => string | undefined} waived the reason, where it cannot run here
 * @property {('in' | 'out')[]} places
 * @property {(wanted: Case) => import('./children.js').Program[]} programs
 */

const list = (values) => values.join(',');

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
          ...[here('../gradlink.js'), 'launch', '-n', String(ranks)],
          ...[process.execPath, here('gradlink-ranks.js')],
          ...[memory, list(sizes), list(places), String(seconds)],
          ...(neighbors ? ['neighbors'] : []),
        ],
      },
    ],
  };
}

/** Compiles the C program once for each MPI; the reason where that fails. */
const compiled = new Map();
function mpiProgram(compiler) {
  if (!compiled.has(compiler)) {
    const output = join(work, compiler);
    const { status, stderr, error } = spawnSync(
      compiler,
      ['-O3', here('mpi_allreduce.c'), '-o', output],
      { encoding: 'utf8' },
    );
    const reason = status === 0 ? undefined : (error?.message ?? stderr.trim().split('\n')[0]);
    compiled.set(compiler, { output, reason });
  }
  return compiled.get(compiler);
}

function mpiWaived(compiler, launcher, packages) {
  const missing = [compiler, launcher].filter((command) => !answers(command));
  if (missing.length > 0) {
    return `${missing.join(' and ')} not installed (apt-get install ${packages})`;
  }
  const { reason } = mpiProgram(compiler);
  return reason === undefined ? undefined : `${compiler} could not compile the program: ${reason}`;
}

/**
 * @param {string} id
 * @param {string} label
 * @param {Record<string, string>} parameters of Open MPI (`--mca`)
 * @returns {Contender}
 */
export function openMpi(id = 'openmpi', label = 'Open MPI', parameters = {}) {
  return {
    id,
    label,
    waived: () => mpiWaived('mpicc.openmpi', 'mpirun.openmpi', 'openmpi-bin libopenmpi-dev'),
    places: ['in', 'out'],
    programs: ({ ranks, sizes, places, seconds }) => [
      {
        command: 'mpirun.openmpi',
        args: [
          ...['--allow-run-as-root', '--oversubscribe', '-n', String(ranks)],
          ...Object.entries(parameters).flatMap(([name, value]) => ['--mca', name, value]),
          ...[mpiProgram('mpicc.openmpi').output, list(sizes), list(places), String(seconds)],
        ],
      },
    ],
  };
}

/** What is tried for "best tuned": Open MPI's algorithms for all-reduce, by their numbers in coll_tuned, and segments. */
export function openMpiTunings() {
  const algorithms = [
    [2, 'nonoverlapping'],
    [3, 'recursive doubling'],
    [4, 'ring'],
    [5, 'segmented ring'],
    [6, 'Rabenseifner'],
  ];
  return algorithms.flatMap(([number, name]) => {
    const segments = number === 5 ? [65536, 262144, 1048576] : [0];
    return segments.map((segment) =>
      openMpi(
        `openmpi-tuned-${number}-${segment}`,
        `Open MPI, ${name}${segment > 0 ? `, segments of ${segment / 1024} KiB` : ''}`,
        {
          coll_tuned_use_dynamic_rules: '1',
          coll_tuned_allreduce_algorithm: String(number),
          coll_tuned_allreduce_algorithm_segmentsize: String(segment),
        },
      ),
    );
  });
}

/** @type {Contender} */
export const mpich = {
  id: 'mpich',
  label: 'MPICH',
  waived: () => mpiWaived('mpicc.mpich', 'mpiexec.mpich', 'mpich libmpich-dev'),
  places: ['in', 'out'],
  programs: ({ ranks, sizes, places, seconds }) => [
    {
      command: 'mpiexec.mpich',
      args: [
        ...['-n', String(ranks)],
        ...[mpiProgram('mpicc.mpich').output, list(sizes), list(places), String(seconds)],
      ],
    },
  ],
};

// The distribution's Python first: apt puts torch there, and another one may come before it in PATH.
const pythons = ['/usr/bin/python3', 'python3'];
const hasGloo = ['-c', 'import torch.distributed as d; assert d.is_available()'];
let python;
let rendezvous = 0;

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
    const meeting = join(work, `gloo-${++rendezvous}`);
    return Array.from({ length: ranks }, (_, rank) => ({
      command: python,
      args: [here('gloo_allreduce.py'), list(sizes), String(seconds), meeting],
      env: { RANK: String(rank), WORLD_SIZE: String(ranks), GLOO_SOCKET_IFNAME: 'lo' },
    }));
  },
};

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
