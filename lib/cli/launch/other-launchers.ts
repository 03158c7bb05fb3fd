// Options of torchrun, horovodrun, mpirun, srun and bfrun, and what takes their place in `gradlink launch`.
import { plainLetters } from '../../nearest.js';

/** Those that mean exactly what one of ours does, each with a value of the same form. */
const same: readonly (readonly [theirs: string, ours: string])[] = [
  ['np num-proc ntasks', '-n'],
  ['host hosts hostfile machinefile -f', '-H'],
  ['-x', '--env'],
];

/** torchrun's, which counts the processes of one host: as -n where there is one host. */
const ofOneHost = 'nprocpernode';

const oneLauncher =
  'Leave it out: the launcher is started once, for all hosts of -H, and tells every process its place.';
const oneHostMore = 'How many processes a host has stands behind its name: -H node1:4,node2:4.';
const files =
  '--output-dir DIR writes what each process prints to files, --tag-output tags its lines.';
const placing =
  'Ranks fill the hosts of -H one after another, and each has its share of the cores (--bind-to none: all of them).';
const elastic =
  '--elastic --min-workers COUNT goes on without hosts and workers that are lost; a job never grows.';

/** The others, and what to do instead. One letter is written with its dash. */
const instead: readonly (readonly [theirs: string, advice: string])[] = [
  ['standalone', 'Leave it out: without -H the job runs on this host.'],
  [
    'nnodes nodes num-nodes -N',
    'The hosts are those of -H, and -n counts all processes: -n 8 -H node1:4,node2:4.',
  ],
  ['node-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf local-addr', oneLauncher],
  ['master-addr', 'Set it with --env MASTER_ADDR=ADDRESS.'],
  ['master-port', 'Set it with --env MASTER_PORT=PORT.'],
  ['redirects -r tee -t log-dir output-filename output', files],
  [
    'prefix-output-with-timestamp timestamp-output tag label -l',
    '--tag-output tags the lines of each process.',
  ],
  ['module -m', 'Give the interpreter as the command: python3 -m MODULE.'],
  ['no-python run-path', 'Leave it out: the command is started as it stands.'],
  ['ssh-port', 'Use --remote-shell "ssh -p PORT".'],
  [
    '-p',
    'For a port of ssh use --remote-shell "ssh -p PORT", for a partition --launcher-arg=-pNAME.',
  ],
  ['ssh-identity-file -i', 'Use --remote-shell "ssh -i FILE".'],
  ['check-build cb', 'gradlink doctor says what this machine has and lacks.'],
  ['network-interfaces nic nics iface', 'Use --network-interface NAME.'],
  ['start-timeout', 'Communicator.world({ timeoutMs }) says how long ranks wait for each other.'],
  ['min-np min-num-proc max-np max-num-proc host-discovery-script elastic-timeout', elastic],
  ['reset-limit', 'Use --elastic --max-restarts COUNT.'],
  ['slots slots-per-host npernode ppn perhost ntasks-per-node', oneHostMore],
  ['config-file', 'There is none: put the whole line into a shell script.'],
  ['timeline timeline-filename', 'Use --env GRADLINK_TIMELINE=FILE.'],
  ['verbose -v display-map report-bindings log-level', '--dry-run prints what would be started.'],
  ['map-by rank-by bynode byslot bycore cpus-per-task', placing],
  ['-c', 'Use -n COUNT for the number of processes; each has its share of the cores.'],
  ['oversubscribe nooversubscribe', 'Leave it out: more processes than cores share them.'],
  ['allow-run-as-root', 'Leave it out: it is given to mpirun where it is needed.'],
  ['mca mpi-args extra-mpi-flags', 'Use --launcher-arg=ARGUMENT, once for each word of it.'],
  ['partition', 'Use --launcher slurm --launcher-arg=--partition=NAME.'],
  ['genv envlist genvlist export', 'Use --env NAME=VALUE.'],
  ['wdir wd cwd chdir', 'Change to the folder first; --sync-dst-dir DIR says it for other hosts.'],
  ['mpi gloo js', 'Use --launcher mpi, ssh, slurm or local.'],
  ['gpus gpus-per-task gpus-per-node', 'Use --gpus-per-worker COUNT.'],
  [
    'fusion-threshold-mb cycle-time-ms',
    'A program sets it: comm.setFusion({ thresholdBytes, cycleMs }).',
  ],
  ['start-method role monitor-interval', 'Leave it out: nothing here needs it.'],
];

/** `--nproc_per_node`, `-np` and `--np` without their dashes; one letter as it stands. */
function keyOf(name: string): string {
  return /^-.$/.test(name) ? name : plainLetters(name);
}

function find<T>(rows: readonly (readonly [string, T])[], name: string): T | undefined {
  const key = keyOf(name);
  return rows.find(([theirs]) => theirs.split(' ').map(keyOf).includes(key))?.[1];
}

/** Our option that means the same as theirs. */
export function sameAs(name: string): string | undefined {
  return find(same, name);
}

export function countsOneHost(name: string): boolean {
  return keyOf(name) === ofOneHost;
}

/** What to do instead of giving it; undefined for what no other launcher has. */
export function insteadOf(name: string): string | undefined {
  return find(instead, name);
}
