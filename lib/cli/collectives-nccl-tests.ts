// Options that nccl-tests has beside the common ones: those that mean something here, and why the others do not.
import { InvalidArgumentError, Option, type Command } from 'commander';

import type { CollectivesOptions } from './collectives-options.js';
import { read } from './parse.js';
import { whole } from '../options/kinds.js';
import { UsageError } from './usage-error.js';
import type { Sweep } from '../measure/collectives/sweep.js';

/** As commander reads them. */
export interface NcclTestsOptions {
  readonly per_iter_timing: number;
  readonly per_iter_skip: number;
  readonly report_cputime: number;
  readonly report_timestamps: number;
  readonly unalign: number;
}

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
      "Every rank has a stream of its own; the null stream would wait for all other work of its GPU, which no caller's does.",
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
    reason: 'It is of -D, kernels on the device API of NCCL, which the package does not have.',
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

export function addNcclTestsOptions(command: Command): Command {
  const flag = read(whole({ min: 0, max: 1 }));
  command
    .option(
      '-I, --per_iter_timing <0|1>',
      'a line for each case: least, most and 99th percentile of its samples, and how they vary',
      flag,
      0,
    )
    .option(
      '-K, --per_iter_skip <count>',
      'samples at the beginning that -I leaves out',
      read(whole({ min: 0 })),
      0,
    )
    .option('-C, --report_cputime <0|1>', 'on GPUs: the time that queueing a call takes', flag, 0)
    .option('-S, --report_timestamps <0|1>', 'when each case was measured', flag, 0)
    .option(
      '-u, --unalign <index>',
      'on GPUs: arrays begin at this element of their memory',
      read(whole({ min: 0, max: 4096 })),
      0,
    );
  for (const one of refused) command.addOption(refusing(one));
  return command;
}

/** What of them the sweep does. */
export function ncclTestsSweep(options: CollectivesOptions): Partial<Sweep> {
  const { per_iter_timing, per_iter_skip, report_cputime, report_timestamps, iters } = options;
  if (per_iter_skip > 0 && per_iter_timing === 0) {
    throw UsageError.of('-K', 'a use with -I 1', String(per_iter_skip), 'Add -I 1.');
  }
  if (per_iter_skip >= iters) {
    throw UsageError.of(
      '-K',
      `below the ${String(iters)} samples of --iters`,
      String(per_iter_skip),
    );
  }
  return {
    ...(per_iter_timing > 0 ? { perIteration: true, perIterationSkip: per_iter_skip } : {}),
    ...(report_cputime > 0 ? { cpuTime: true } : {}),
    ...(report_timestamps > 0 ? { timestamps: true } : {}),
  };
}
