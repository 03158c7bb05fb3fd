// What the launchers take from mpirun, srun and the environment.
import { describe, expect, it } from 'vitest';

import { keeperPlace } from '../../lib/launch/keeper-place.js';
import { segmentsOf } from '../../lib/launch/leftovers.js';
import { flavorOf } from '../../lib/launch/mpirun.js';
import { mpiPlugin } from '../../lib/launch/slurm.js';
import { startFailure } from '../../lib/launch/processes.js';
import { keeperVariables, variablesOfRole } from '../../lib/launch/role-env.js';
import { syncCommands } from '../../lib/launch/sync.js';

describe('mpirun', () => {
  it.each([
    ['mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to', 'openmpi4'],
    ['mpirun (Open MPI) 5.0.3\n', 'openmpi5'],
    ['prterun (PRRTE) 3.0.2\n', 'openmpi5'],
    ['HYDRA build details:\n    Version:    4.0.2', 'hydra'],
    ['Intel(R) MPI Library for Linux* OS, Version 2021.9', 'hydra'],
    ['mpirun of somebody else', undefined],
  ])('%j', (version, flavor) => {
    expect(flavorOf(version)).toBe(flavor);
  });
});

describe("Slurm's MPI plugins", () => {
  const listed =
    'MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n';

  it('go with the MPI', () => {
    expect(mpiPlugin(listed, undefined)).toBe('pmix');
    expect(mpiPlugin(listed, 'openmpi')).toBe('pmix');
    expect(mpiPlugin(listed, 'mpich')).toBe('pmi2');
  });

  it('are those that are there', () => {
    expect(mpiPlugin('MPI plugin types are...\n\tnone\n\tpmi2\n', undefined)).toBe('pmi2');
    expect(mpiPlugin('MPI plugin types are...\n\tnone\n', undefined)).toBeUndefined();
  });
});

it.each([
  ['OMPI_COMM_WORLD', 'RANK=3 LOCAL_RANK=1 LOCAL_SIZE=2', { place: 3, localRank: 1, localSize: 2 }],
  ['', 'PMI_RANK=0 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4', { place: 0, localRank: 0, localSize: 4 }],
  ['SLURM', 'PROCID=5 LOCALID=1 STEP_TASKS_PER_NODE=4', { place: 5, localRank: 1, localSize: 4 }],
  [
    'SLURM',
    'PROCID=5 LOCALID=1 STEP_TASKS_PER_NODE=4(x2)',
    { place: 5, localRank: 1, localSize: 4 },
  ],
  ['SLURM', 'PROCID=5 LOCALID=1 STEP_TASKS_PER_NODE=4,2', { place: 5, localRank: 1 }],
  ['', 'PATH=/bin', undefined],
  ['OMPI_COMM_WORLD', 'RANK=first', undefined],
])('the place of a process of %s, %s', (starter, variables, expected) => {
  const words = variables.split(' ').map((word) => word.split('='));
  const prefix = starter === '' ? '' : `${starter}_`;
  const env = Object.fromEntries(words.map(([name = '', value]) => [`${prefix}${name}`, value]));
  expect(keeperPlace(env)).toEqual(expected);
});

it('each role has its own variables, and a program that does not start the status of a shell', () => {
  const env = keeperVariables({ worker: { A: '1' }, server: { B: '2' } });
  expect(variablesOfRole('worker', env)).toEqual({ A: '1' });
  expect(variablesOfRole('server', env)).toEqual({ B: '2' });
  const status = (code: string) => startFailure('x', Object.assign(new Error(), { code })).exitCode;
  expect(['ENOENT', 'EACCES'].map(status)).toEqual([127, 126]);
});

describe('bringing the folder to hosts', () => {
  it('keeps what the shell there would split together', () => {
    expect(syncCommands('node1', 'ssh -p 2222', "/tmp/it's here")).toEqual([
      ['ssh', '-p', '2222', 'node1', `mkdir -p '/tmp/it'\\''s here'`],
      [
        ...['rsync', '--archive', '--compress', '--rsh=ssh -p 2222'],
        ...['./', "node1:/tmp/it's here/"],
      ],
    ]);
  });
});

describe("Open MPI's shared segments", () => {
  const files = [
    'vader_segment.node1.0.5cd70001.1',
    'vader_segment.node1.0.5cd70001.11',
    'vader_segment.node1.0.5cd80001.1',
    'other.5cd70001.1',
  ];

  it('are known by job and rank', () => {
    expect(segmentsOf(files, { PMIX_NAMESPACE: String(0x5cd70001) }, 1)).toEqual([files[0]]);
  });

  it('are left alone where the job has no number', () => {
    expect(segmentsOf(files, { PMIX_NAMESPACE: 'slurm.pmix.2.0' }, 1)).toEqual([]);
    expect(segmentsOf(files, {}, 1)).toEqual([]);
  });
});
