// The options of `gradlink launch`.
import { launcherName } from './mxnet.js';
import { defaultMaxRestarts } from '../../launch/elastic.js';
import { launcherVariables } from '../../launch/job.js';
import {
  above,
  choice,
  flag,
  repeated,
  text,
  whole,
  WrongValue,
  type Typed,
} from '../../options/kinds.js';
import { optionTable, type ReadOf } from '../../options/table.js';

export const mostWorkers = 4096;
const count = whole({ min: 1, max: mostWorkers });
const counted = ['auto', 'gpu'] as const;

/** How many workers: a number, or what of this host gives it. */
const workerCount: Typed<number | (typeof counted)[number]> = {
  parse(given) {
    const word = counted.find((one) => one === given);
    if (word !== undefined) return word;
    try {
      return count.parse(given);
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
      throw new WrongValue(`${error.message.slice(0, -1)}, auto (one a core) or gpu (one a GPU).`);
    }
  },
  choices: counted,
};

/** Variables, `NAME=VALUE`; MXNet writes `NAME:VALUE`. */
const variables: Typed<Readonly<Record<string, string>>> = {
  parse(given) {
    const [, name, value] = /^([A-Za-z_]\w*)[=:](.*)$/s.exec(given) ?? [];
    if (name === undefined || value === undefined) {
      throw new WrongValue('Expected NAME=VALUE, such as GRADLINK_NUM_THREADS=1.');
    }
    if (launcherVariables.includes(name)) {
      throw new WrongValue(
        `Expected a variable that the launcher does not set itself, such as ${name}.`,
      );
    }
    return { [name]: value };
  },
  join: (before, next) => ({ ...before, ...next }),
};

const seconds = above(0);

export const launchTable = optionTable({
  numWorkers: {
    flag: '-n, --num-workers <count>',
    help: 'processes to start, the ranks 0 to count - 1; auto: one a core of this host, gpu: one a GPU (also as -np)',
    kind: workerCount,
    required: true,
  },
  /** Absent: as many as workers where the command names a store with servers, else none. */
  numServers: {
    flag: '-s, --num-servers <count>',
    help: 'processes that keep the distributed store; they run gradlink serve (default: as many as workers where the command has --kv-store dist_…, else 0)',
    kind: whole({ min: 0, max: 4096 }),
  },
  hostfile: {
    flag: '-H, --hostfile <file>',
    help: 'the hosts to run on; or the hosts themselves: node1:4,node2:4; or one by its name',
    kind: text(),
  },
  launcher: {
    flag: '--launcher <name>',
    help: 'how they are started; local: on this host; mpi: by mpirun; ssh: by mpirun over ssh; slurm: by srun (default: local, ssh with -H)',
    kind: launcherName,
  },
  env: {
    flag: '--env <NAME=VALUE>',
    help: 'set a variable in every process; may be repeated',
    kind: variables,
  },
  envWorker: {
    flag: '--env-worker <NAME=VALUE>',
    help: 'set a variable in every worker (NAME:VALUE too); may be repeated',
    kind: variables,
  },
  envServer: {
    flag: '--env-server <NAME=VALUE>',
    help: 'set a variable in every server (NAME:VALUE too); may be repeated',
    kind: variables,
  },
  /** MXNet's; every store sends pieces by priority. */
  p3: { flag: '--p3', help: 'has no effect', kind: flag, hidden: true },
  syncDstDir: {
    flag: '--sync-dst-dir <dir>',
    help: 'first copy the current folder there on every host of the hostfile, and run there (rsync)',
    kind: text(),
  },
  remoteShell: {
    flag: '--remote-shell <command>',
    help: 'command that reaches other hosts, such as "ssh -p 2222"',
    kind: text(),
  },
  mpirun: {
    flag: '--mpirun <program>',
    help: 'the mpirun to use, of Open MPI or MPICH',
    kind: text(),
  },
  launcherArg: {
    flag: '--launcher-arg <argument>',
    help: 'an argument for mpirun or srun, as --launcher-arg=--partition=gpu; may be repeated',
    kind: repeated(text()),
  },
  networkInterface: {
    flag: '--network-interface <names>',
    help: 'the interface on which the job listens and calls, several with commas (the first that a host has), or a network such as 10.1.0.0/16 (GRADLINK_INTERFACE)',
    kind: text(),
  },
  ports: {
    flag: '--ports <first-last>',
    help: 'the ports that the job listens on, such as 40000-40100 (GRADLINK_PORTS)',
    kind: text(),
  },
  bindTo: {
    flag: '--bind-to <what>',
    help: 'core: each process runs on its share of the cores; none: on any core',
    kind: choice(['core', 'none'] as const),
    default: 'core',
  },
  gpusPerWorker: {
    flag: '--gpus-per-worker <count>',
    help: 'each worker sees COUNT GPUs of its host, by its local rank (CUDA_VISIBLE_DEVICES), instead of all, and runs on the cores next to them',
    kind: whole({ min: 1, max: 64 }),
  },
  gpuPerWorker: { flag: '--gpu-per-worker', help: 'as --gpus-per-worker 1', kind: flag },
  timeout: {
    flag: '--timeout <seconds>',
    help: 'end the job after this long, with exit status 124',
    kind: seconds,
  },
  grace: {
    flag: '--grace <seconds>',
    help: 'time between SIGTERM and SIGKILL when the job is ended',
    kind: seconds,
    default: 5,
  },
  hostTimeout: {
    flag: '--host-timeout <seconds>',
    help: 'a host that is silent for this long is lost, and with it the job',
    kind: seconds,
    default: 15,
  },
  tolerateWorkerLoss: {
    flag: '--tolerate-worker-loss',
    help: 'go on without workers that fail, as long as one is left',
    kind: flag,
  },
  elastic: {
    flag: '--elastic',
    help: 'when a worker or a host is lost, start the others again as a smaller job, which goes on from its checkpoint',
    kind: flag,
  },
  maxRestarts: {
    flag: '--max-restarts <count>',
    help: `with --elastic: how often after workers that exit with an error; 0: only after those that a signal kills (default: ${defaultMaxRestarts})`,
    kind: whole({ min: 0, max: 4096 }),
  },
  minWorkers: {
    flag: '--min-workers <count>',
    help: 'with --elastic: the fewest workers that a job goes on with',
    kind: count,
    default: 1,
  },
  tagOutput: {
    flag: '--tag-output',
    help: 'put [RANK] before every line, [sN] before those of server N',
    kind: flag,
  },
  outputDir: {
    flag: '--output-dir <dir>',
    help: 'also write rank-N.out and rank-N.err there, server-N.out and server-N.err',
    kind: text(),
  },
  dryRun: {
    flag: '--dry-run',
    help: 'print what would be started, one line a process, and start nothing',
    kind: flag,
  },
});

/** As they are typed. */
export type TypedOptions = ReadOf<typeof launchTable>;

/** With the number of workers and the launcher. */
export interface LaunchOptions extends Omit<TypedOptions, 'numWorkers' | 'launcher'> {
  readonly numWorkers: number;
  readonly launcher: string;
}
