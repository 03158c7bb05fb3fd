// Real MPI jobs: which mpiruns this machine has, and scripts under them.
import { spawnSync } from 'node:child_process';

import type { TestContext } from 'vitest';

import type { Running, Scripts } from './processes.js';

/** The MPIs that are tested where they are installed. */
export const flavours = ['openmpi', 'mpich'] as const;
export type Flavour = (typeof flavours)[number];

const packages = { openmpi: 'openmpi-bin', mpich: 'mpich' } as const;
const spoken = { openmpi: /Open MPI|OpenRTE|PRRTE/, mpich: /HYDRA/ } as const;

function find(flavour: Flavour): string | undefined {
  return [`mpirun.${flavour}`, 'mpirun'].find((program) => {
    const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
    return spoken[flavour].test(stdout);
  });
}

const found = new Map(flavours.map((flavour) => [flavour, find(flavour)]));

/** Skips the test where this MPI's mpirun is missing. */
export function mpirunOf(flavour: Flavour, context: TestContext): string {
  const program = found.get(flavour);
  if (program === undefined) {
    context.skip(`no mpirun of this MPI: apt-get install ${packages[flavour]}`);
  }
  return program;
}

/** Starts the script as each rank of a job under this mpirun. */
export function startJob(
  scripts: Scripts,
  program: string,
  size: number,
  source: string,
  env: Record<string, string> = {},
): Running {
  const own = {
    // Open MPI's: root in a container, more ranks than cores, and cores that nobody is bound to.
    OMPI_ALLOW_RUN_AS_ROOT: '1',
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
    OMPI_MCA_rmaps_base_oversubscribe: '1',
    OMPI_MCA_hwloc_base_binding_policy: 'none',
    // Of a launcher around the tests.
    GRADLINK_JOB: '',
    GRADLINK_RANK: '',
    ...env,
  };
  return scripts.startUnder([program, '-n', String(size)], source, own);
}
