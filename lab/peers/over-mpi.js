// Our MPI communicator under a real mpirun: as it is on one host, and with a host for every rank, so that MPI carries all.
import { fileURLToPath } from 'node:url';
import { answers } from './children.js';

const ranks = fileURLToPath(new URL('gradlink-ranks.js', import.meta.url));

const launchers = {
  openmpi: {
    name: 'Open MPI',
    command: 'mpirun.openmpi',
    args: ['--allow-run-as-root', '--oversubscribe'],
    install: 'openmpi-bin libopenmpi-dev',
  },
  mpich: { name: 'MPICH', command: 'mpiexec.mpich', args: [], install: 'mpich libmpich-dev' },
};

/** @returns {import('./contenders.js').Contender} */
function overMpi(mpi, flat) {
  const { name, command, args, install } = launchers[mpi];
  return {
    id: `gradlink-${mpi}${flat ? '-flat' : ''}`,
    label: `gradlink over ${name}${flat ? ', a host for every rank' : ''}`,
    waived: () =>
      answers(command) ? undefined : `${command} not installed (apt-get install ${install})`,
    places: ['in', 'out'],
    programs: ({ ranks: size, sizes, places, seconds }) => [
      {
        command,
        args: [
          ...[...args, '-n', String(size), process.execPath, ranks, 'plain'],
          ...[sizes.join(','), places.join(','), String(seconds)],
        ],
        env: {
          GRADLINK_TRANSPORT: 'mpi',
          GRADLINK_NUM_WORKERS: String(size),
          ...(flat ? { GRADLINK_RANKS_PER_NODE: '1' } : {}),
        },
      },
    ],
  };
}

export const overMpis = Object.keys(launchers).flatMap((mpi) => [
  overMpi(mpi, false),
  overMpi(mpi, true),
]);
