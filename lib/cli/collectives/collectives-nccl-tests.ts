// Options that nccl-tests has beside the common ones: what two of them need, and why others mean nothing here.
import { InvalidArgumentError, Option, type Command } from 'commander';

import type { CollectivesOptions } from './collectives-options.js';
import type { Io } from '../io.js';
import { UsageError } from '../usage-error.js';
import type { AskedValues } from '../../measure/collectives/case-values.js';
import { groupsOf, splitRule, unevenGroups } from '../../measure/collectives/split.js';
import { jobSize } from '../../measure/job.js';
import { WrongValue } from '../../options/kinds.js';

interface Refused {
  readonly flags: string;
  /** The value that asks for nothing. */
  readonly off: string | null;
  readonly reason: string;
}

const refused: readonly Refused[] = [
  {
    flags: '-p, --parallel_init <0|1>',
    off: '0',
    reason:
      'All GPUs of a process join in one group, and with -t each in a thread of its own: use -t for that.',
  },
  {
    flags: '-y, --stream_null <0|1>',
    off: '0',
    reason:
      "Every rank has a stream of its own; the null stream would wait for all other work on its GPU, as no caller's does.",
  },
  {
    flags: '-x, --cta_policy <0-2>',
    off: null,
    reason:
      "Communicators are opened as the package opens them: set NCCL's variable NCCL_CTA_POLICY instead.",
  },
  {
    flags: '-D, --device_implementation <number>',
    off: '0',
    reason:
      "The package has no kernels on NCCL's device API: use nccl-tests itself to compare them with the collectives.",
  },
  {
    flags: '-V, --device_cta_count <count>',
    off: null,
    reason: "It belongs to -D, kernels on NCCL's device API, which the package does not have.",
  },
  {
    flags: '-M, --memory <0|1>',
    off: '0',
    reason:
      'gradlink does not ask what NCCL allocates: nvidia-smi shows it, and gradlink doctor the memory of each GPU.',
  },
];

function refusing({ flags, off, reason }: Refused): Option {
  return new Option(flags, `as in nccl-tests: ${off === null ? 'refused' : `${off} alone`}`)
    .hideHelp()
    .argParser((text) => {
      if (text !== off) throw new InvalidArgumentError(reason);
      return text;
    });
}

export function refuseNcclTests(command: Command): Command {
  for (const one of refused) command.addOption(refusing(one));
  return command;
}

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
