// What people bring from MXNet's tools/launch.py: its defaults, its launchers, its variables.
import { UsageError } from '../usage-error.js';
import { launchers } from '../../launch/launchers.js';
import { WrongValue, type Typed } from '../../options/kinds.js';
import { didYouMean } from '../../nearest.js';
import { hasServers, isStoreType, parseStoreType } from '../../kvstore/types.js';

type Env = Readonly<Record<string, string | undefined>>;

/** Launchers of MXNet's that are none here, and what does their work. */
const elsewhere: Readonly<Record<string, string>> = {
  sge: 'submit a script that calls gradlink launch --launcher mpi, whose mpirun reads the allocation of Grid Engine',
  yarn: 'start on hosts that you name, with --launcher ssh -H HOSTS',
};

/** The name of a launcher, as an option. */
export const launcherName: Typed<string> = {
  parse(text) {
    if (Object.hasOwn(launchers, text)) return text;
    const instead = elsewhere[text];
    const names = Object.keys(launchers).join(', ');
    throw new WrongValue(
      instead === undefined
        ? `Expected one of: ${names}.${didYouMean(text, Object.keys(launchers))}`
        : `Expected one of: ${names}. There is no launcher ${text}: ${instead}.`,
    );
  },
  choices: Object.keys(launchers),
};

/** Where the command itself asks for a store with servers: `--kv-store dist_sync`, `--kvstore=dist`. No other word counts. */
function storeOf(command: readonly string[]): string | undefined {
  const words = command.flatMap((word) => {
    const equals = word.startsWith('-') ? word.indexOf('=') : -1;
    return equals < 0 ? [word] : [word.slice(0, equals), word.slice(equals + 1)];
  });
  return words.find((word, i) => {
    if (!/^--?kv[-_]?store$/.test(words[i - 1] ?? '')) return false;
    const type = word.toLowerCase();
    return type.startsWith('dist') && isStoreType(type) && hasServers(parseStoreType(type).kind);
  });
}

/**
 * As in MXNet, as many servers as workers where the job needs some and nobody says how many.
 *
 * @param note gets what was guessed
 */
export function serversOf(
  given: number | undefined,
  workers: number,
  command: readonly string[],
  note: (text: string) => void,
): number {
  if (given !== undefined) return given;
  const store = storeOf(command);
  if (store === undefined) return 0;
  note(`${workers === 1 ? 'one server' : `${workers} servers`} for --kv-store ${store} (-s)`);
  return workers;
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
  [/^DMLC_(PS|NUM)_/, 'the options of gradlink launch say what a job is'],
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
    // What else begins with DMLC_ tells of no job: DMLC_LOG_STACK_TRACE_DEPTH of images with XGBoost or TVM.
    if (!/^(DMLC|MXNET_KVSTORE)_/.test(name)) continue;
    const instead = replacements.find(([pattern]) => pattern.test(name))?.[1];
    if (instead === undefined) continue;
    throw new UsageError(`${name} is MXNet's and has no effect here (${instead}). Unset it.`);
  }
}
