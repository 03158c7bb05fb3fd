// What people bring from MXNet's tools/launch.py: its defaults, its launchers, its variables.
import { InvalidArgumentError } from 'commander';

import { offering } from '../parse.js';
import { UsageError } from '../usage-error.js';
import { launchers } from '../../launch/launchers.js';
import { didYouMean } from '../../nearest.js';
import { hasServers, isStoreType, parseStoreType } from '../../kvstore/types.js';

type Env = Readonly<Record<string, string | undefined>>;

/** Launchers of MXNet's that are none here, and what does their work. */
const elsewhere: Readonly<Record<string, string>> = {
  sge: 'submit a script that calls gradlink launch --launcher mpi, whose mpirun reads the allocation of Grid Engine',
  yarn: 'start on hosts that you name, with --launcher ssh -H HOSTS',
};

/** The name of a launcher, as an option. */
export const launcherName = offering(Object.keys(launchers), (text) => {
  if (Object.hasOwn(launchers, text)) return text;
  const instead = elsewhere[text];
  const names = Object.keys(launchers).join(', ');
  throw new InvalidArgumentError(
    instead === undefined
      ? `Expected one of: ${names}.${didYouMean(text, Object.keys(launchers))}`
      : `Expected one of: ${names}. There is no launcher ${text}: ${instead}.`,
  );
});

/** Whether the command itself names a type of store with servers: `--kv-store dist_sync`, `--kv-store=dist`. */
function namesServers(command: readonly string[]): boolean {
  return command.some((word) => {
    const type = word.replace(/^--?[\w-]+=/, '').toLowerCase();
    return type.startsWith('dist') && isStoreType(type) && hasServers(parseStoreType(type).kind);
  });
}

/** As in MXNet, as many servers as workers where the job needs some and nobody says how many. */
export function serversOf(
  given: number | undefined,
  workers: number,
  command: readonly string[],
): number {
  return given ?? (namesServers(command) ? workers : 0);
}

/** Variables of MXNet's that count here, each where it is read. */
const honoured: ReadonlySet<string> = new Set(['MXNET_KVSTORE_BIGARRAY_BOUND']);

/** What to do in place of setting one. */
const replacements: readonly (readonly [RegExp, string])[] = [
  [/^DMLC_NUM_WORKER$/, 'say -n COUNT'],
  [/^DMLC_NUM_SERVER$/, 'say -s COUNT'],
  [
    /^DMLC_(ROLE|PS_ROOT_URI|PS_ROOT_PORT|NODE_HOST|INTERFACE|WORKER_ID|SERVER_ID|LOCAL)$/,
    'the launcher gives every process its place',
  ],
  [/^DMLC_/, 'the options of gradlink launch say what a job is'],
  [/^MXNET_KVSTORE_USETREE$|TREE/, 'NCCL chooses its trees, and NCCL_ALGO=Tree asks for them'],
  [/REDUCTION_NTHREADS$/, 'GRADLINK_NUM_THREADS sets the threads of a process'],
  [/SLICE_THRESHOLD$/, 'pieces have 256 KiB, sent by priority'],
  [/^MXNET_KVSTORE_/, 'options of KVStore.create take their place'],
];

/**
 * Variables of MXNet's that would be passed over in silence otherwise.
 *
 * @throws UsageError
 */
export function refuseVariables(env: Env): void {
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || honoured.has(name)) continue;
    if (!/^(DMLC|MXNET_KVSTORE)_/.test(name)) continue;
    const instead = replacements.find(([pattern]) => pattern.test(name))?.[1] ?? '';
    throw new UsageError(`${name} is MXNet's and has no effect here (${instead}). Unset it.`);
  }
}
