// MPIs that are measured: the distribution's Open MPI, its tunings, a newer one, and MPICH, all through mpi_allreduce.c.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { answers } from './children.js';
import { builtWaived, here, list, work } from './work.js';

/** @typedef {import('./contenders.js').Contender} Contender */

const allReduce = 'mpi_allreduce';

/** Compiles a C program once for each MPI; the reason where that fails. */
const compiled = new Map();
function mpiProgram(compiler, program = allReduce) {
  const key = `${program}-${compiler.replaceAll('/', '-')}`;
  if (!compiled.has(key)) {
    const output = join(work, key);
    const { status, stderr, error } = spawnSync(
      compiler,
      ['-O3', here(`${program}.c`), '-o', output],
      { encoding: 'utf8' },
    );
    const reason = status === 0 ? undefined : (error?.message ?? stderr.trim().split('\n')[0]);
    compiled.set(key, { output, reason });
  }
  return compiled.get(key);
}

function mpiWaived(compiler, launcher, packages, program) {
  const missing = [compiler, launcher].filter((command) => !answers(command));
  if (missing.length > 0) {
    return `${missing.join(' and ')} not installed (apt-get install ${packages})`;
  }
  const { reason } = mpiProgram(compiler, program);
  return reason === undefined ? undefined : `${compiler} could not compile the program: ${reason}`;
}

const distribution = { compiler: 'mpicc.openmpi', launcher: 'mpirun.openmpi' };

function openMpiPrograms({ compiler, launcher }, parameters, variables = {}, program) {
  return openMpiJob(launcher, parameters, variables, () => mpiProgram(compiler, program).output);
}

function openMpiJob(launcher, parameters, variables, program) {
  return ({ ranks, sizes, places, seconds }) => [
    {
      command: launcher,
      args: [
        ...['--allow-run-as-root', '--oversubscribe', '-n', String(ranks)],
        ...Object.entries(parameters).flatMap(([name, value]) => ['--mca', name, value]),
        ...Object.entries(variables).flatMap(([name, value]) => ['-x', `${name}=${value}`]),
        ...[program(), list(sizes), list(places), String(seconds)],
      ],
    },
  ];
}

/**
 * @param {string} id
 * @param {string} label
 * @param {Record<string, string>} parameters of Open MPI (`--mca`)
 * @param {Record<string, string>} variables of its processes (`-x`)
 * @returns {Contender}
 */
export function openMpi(id = 'openmpi', label = 'Open MPI', parameters = {}, variables = {}) {
  const { compiler, launcher } = distribution;
  return {
    id,
    label,
    waived: () => mpiWaived(compiler, launcher, 'openmpi-bin libopenmpi-dev'),
    places: ['in', 'out'],
    programs: openMpiPrograms(distribution, parameters, variables),
  };
}

/** Where build-openmpi.sh put a newer Open MPI than the distribution's. */
export const xhcVariable = 'GRADLINK_PEERS_OPENMPI';

/**
 * The newer Open MPI with its component for one host, which it does not choose by itself. Without XPMEM, which maps one
 * process's memory into another, that component ends with a fault above its limit for copies, so that the limit is raised.
 */
const xhcParameters = ({ sizes }) => ({
  coll_xhc_priority: '100',
  ...(existsSync('/dev/xpmem') ? {} : { coll_xhc_cico_max: String(Math.max(4096, ...sizes)) }),
});

/** @type {Contender} */
export const openMpiXhc = {
  id: 'openmpi-xhc',
  label: 'Open MPI 6, coll/xhc',
  waived: () => {
    const prefix = process.env[xhcVariable] ?? '';
    if (prefix === '') return `${xhcVariable} names no Open MPI (lab/peers/build-openmpi.sh)`;
    const { compiler, launcher } = newer(prefix);
    const missing = [compiler, launcher].filter((command) => !answers(command));
    return missing.length > 0
      ? `${xhcVariable}: ${missing.join(' and ')} cannot be run`
      : mpiWaived(compiler, launcher);
  },
  places: ['in', 'out'],
  programs: (wanted) =>
    openMpiPrograms(newer(process.env[xhcVariable] ?? ''), xhcParameters(wanted))(wanted),
};

const newer = (prefix) => ({
  compiler: join(prefix, 'bin', 'mpicc'),
  launcher: join(prefix, 'bin', 'mpirun'),
});

const uccVariable = 'GRADLINK_PEERS_UCC';

/** UCC's own all-reduce over UCX's shared memory; Open MPI only starts the ranks. @type {Contender} */
export const ucc = {
  id: 'ucc',
  label: 'UCC over UCX',
  waived: () =>
    answers(distribution.launcher)
      ? builtWaived(uccVariable, 'build-ucc.sh')
      : `${distribution.launcher} not installed (apt-get install openmpi-bin)`,
  places: ['in', 'out'],
  programs: openMpiJob(
    distribution.launcher,
    {},
    { UCX_TLS: 'posix,sysv,self' },
    () => process.env[uccVariable] ?? '',
  ),
};

/** By its number in coll_tuned; `segment` in bytes, 0 where it has none. */
const algorithm = (number, segment = 0) => ({
  coll_tuned_use_dynamic_rules: '1',
  coll_tuned_allreduce_algorithm: String(number),
  coll_tuned_allreduce_algorithm_segmentsize: String(segment),
});

/**
 * What is tried for "best tuned": Open MPI's algorithms for all-reduce, with segments, over its own shared memory and over UCX's;
 * and its components for one host, which are there and have to be asked for. UCX is faster there when it may not read another
 * process's memory, and has to be told.
 */
export function openMpiTunings() {
  const algorithms = [
    [2, 'nonoverlapping'],
    [3, 'recursive doubling'],
    [4, 'ring'],
    [6, 'Rabenseifner'],
  ];
  const segments = [65536, 262144, 1048576];
  const ring = (segment) => `segmented ring, segments of ${segment / 1024} KiB`;
  const ucx = { pml: 'ucx', pml_ucx_tls: 'any', pml_ucx_devices: 'any' };
  const overUcx = (id, label, parameters) =>
    openMpi(
      id,
      `Open MPI over UCX, ${label}`,
      { ...ucx, ...parameters },
      { UCX_TLS: 'posix,sysv,self' },
    );
  return [
    openMpi('openmpi-sm', 'Open MPI, coll/sm', { coll_sm_priority: '100' }),
    openMpi('openmpi-han', 'Open MPI, coll/han', { coll_han_priority: '100' }),
    ...algorithms.map(([number, name]) =>
      openMpi(`openmpi-tuned-${number}-0`, `Open MPI, ${name}`, algorithm(number)),
    ),
    ...segments.map((segment) =>
      openMpi(`openmpi-tuned-5-${segment}`, `Open MPI, ${ring(segment)}`, algorithm(5, segment)),
    ),
    overUcx('openmpi-ucx', 'default algorithm', {}),
    ...segments
      .slice(0, 2)
      .map((segment) => overUcx(`openmpi-ucx-5-${segment}`, ring(segment), algorithm(5, segment))),
  ];
}

/** @returns {Contender} */
function ofMpich(id, label, places, program) {
  const compiler = 'mpicc.mpich';
  return {
    id,
    label,
    waived: () => mpiWaived(compiler, 'mpiexec.mpich', 'mpich libmpich-dev', program),
    places,
    programs: ({ ranks, sizes, places: wanted, seconds }) => [
      {
        command: 'mpiexec.mpich',
        args: [
          ...['-n', String(ranks)],
          ...[mpiProgram(compiler, program).output, list(sizes), list(wanted), String(seconds)],
        ],
      },
    ],
  };
}

export const mpich = ofMpich('mpich', 'MPICH', ['in', 'out'], allReduce);

const messages = 'mpi_messages';
/** What is timed of messages between two ranks. */
export const messageKinds = ['latency', 'bandwidth'];

/** Messages between two ranks. @type {Contender[]} */
export const mpiMessages = [
  {
    ...openMpi('openmpi-messages', 'Open MPI, messages'),
    waived: () =>
      mpiWaived(
        distribution.compiler,
        distribution.launcher,
        'openmpi-bin libopenmpi-dev',
        messages,
      ),
    places: messageKinds,
    programs: openMpiPrograms(distribution, {}, {}, messages),
  },
  ofMpich('mpich-messages', 'MPICH, messages', messageKinds, messages),
];
