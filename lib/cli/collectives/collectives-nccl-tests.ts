// Options that nccl-tests has beside the common ones: what two of them need, and why others mean nothing here.
import type { CollectivesOptions } from './collectives-options.js';
import type { Io } from '../io.js';
import { UsageError } from '../usage-error.js';
import type { AskedValues } from '../../measure/collectives/case-values.js';
import { groupsOf, splitRule, unevenGroups } from '../../measure/collectives/split.js';
import { jobSize } from '../../measure/job.js';
import { WrongValue } from '../../options/kinds.js';
import type { TypedRow, TypedTable } from '../../options/table.js';

/** An option that is taken with the value that asks for nothing, if it has one. */
const refused = (flag: string, off: string | undefined, reason: string): TypedRow<string> => ({
  flag,
  help: `as in nccl-tests: ${off === undefined ? 'refused' : `${off} alone`}`,
  hidden: true,
  kind: {
    parse(text) {
      if (text !== off) throw new WrongValue(reason);
      return text;
    },
  },
});

export const ncclTestsTable: TypedTable = {
  parallel_init: refused(
    '-p, --parallel_init <0|1>',
    '0',
    'All GPUs of a process join in one group, and with -t each in a thread of its own: use -t for that.',
  ),
  stream_null: refused(
    '-y, --stream_null <0|1>',
    '0',
    "Every rank has a stream of its own; the null stream would wait for all other work on its GPU, as no caller's does.",
  ),
  cta_policy: refused(
    '-x, --cta_policy <0-2>',
    undefined,
    "Communicators are opened as the package opens them: set NCCL's variable NCCL_CTA_POLICY instead.",
  ),
  device_implementation: refused(
    '-D, --device_implementation <number>',
    '0',
    "The package has no kernels on NCCL's device API: use nccl-tests itself to compare them with the collectives.",
  ),
  device_cta_count: refused(
    '-V, --device_cta_count <count>',
    undefined,
    "It belongs to -D, kernels on NCCL's device API, which the package does not have.",
  ),
  memory: refused(
    '-M, --memory <0|1>',
    '0',
    'gradlink does not ask what NCCL allocates: nvidia-smi shows it, and gradlink doctor the memory of each GPU.',
  ),
};

/** What of a case is told besides. */
export function caseValuesAsked(options: CollectivesOptions): AskedValues {
  const { perIteration, perIterationSkip: skipped, cpuTime, timestamps, iterations } = options;
  if (skipped > 0 && !perIteration) {
    throw new UsageError('-K needs -I 1.');
  }
  if (skipped >= iterations) {
    throw UsageError.of(
      '-K',
      `below the ${String(iterations)} samples of --iters`,
      String(skipped),
    );
  }
  return { perIteration, perIterationSkip: skipped, cpuTime, timestamps };
}

/** The rule of nccl-tests' variables, which count for ranks that are processes as there. */
function splitOfVariables(env: Io['env']): string | undefined {
  const { NCCL_TESTS_SPLIT: rule = '', NCCL_TESTS_SPLIT_MASK: mask = '' } = env;
  if (jobSize() === undefined || (mask === '' && rule === '')) return undefined;
  const [name, text] =
    mask === ''
      ? ['NCCL_TESTS_SPLIT', rule]
      : ['NCCL_TESTS_SPLIT_MASK', `AND 0x${mask.replace(/^0x/i, '')}`];
  try {
    return splitRule.parse(text);
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    throw new UsageError(`${name}=${env[name] ?? ''}: ${error.message}`);
  }
}

/** How the ranks are split, and how many each group has. */
export function splitAsked(
  { split: typed }: Pick<CollectivesOptions, 'split'>,
  ranks: number,
  env: Io['env'],
): { readonly split: string | undefined; readonly each: number } {
  const split = typed ?? splitOfVariables(env);
  if (split === undefined) return { split, each: ranks };
  if (jobSize() === undefined) {
    throw UsageError.of(
      '--split',
      'ranks that are processes of a job',
      'ranks of one process',
      'Run it under gradlink launch -n 4, mpirun or srun.',
    );
  }
  const groups = groupsOf(split, ranks);
  const uneven = unevenGroups(groups);
  if (uneven !== undefined) {
    throw UsageError.of(
      '--split',
      `a rule that makes groups of one size of ${ranks} ranks`,
      uneven,
    );
  }
  return { split, each: groups[0]?.ranks.length ?? ranks };
}
