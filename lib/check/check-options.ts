// The options of `gradlink check`.
import {
  above,
  choice,
  flag,
  gpuList,
  inUnits,
  list,
  milliseconds,
  text,
  whole,
} from '../options/kinds.js';
import type { Given } from '../measure/common-run.js';
import { optionTable } from '../options/table.js';

/** In the order in which they run. */
export const partNames = ['doctor', 'cores', 'memory', 'ranks', 'gpus'] as const;

export const checkTable = optionTable({
  /** Default all. */
  parts: {
    flag: '--parts <list>',
    help: 'parts to check',
    kind: list(choice(partNames)),
    default: [...partNames],
  },
  /** Default all. */
  gpus: {
    flag: '--gpus <list>',
    help: 'only these GPUs, such as 0,2 (default: all)',
    kind: gpuList,
  },
  /** Smaller copies and all-reduces of GPUs. */
  quick: {
    flag: '--quick',
    help: 'smaller copies and sums on GPUs: figures that scatter more',
    kind: flag,
    default: false,
  },
  /** Of each call, copy or rendezvous; default 30,000. */
  timeoutMs: {
    flag: '--timeout <seconds>',
    help: 'calls, copies and rendezvous of ranks that take longer fail',
    kind: inUnits(milliseconds, 1000, whole({ min: 1, max: 86_400 })),
    default: 30_000,
  },
  /** Burn-in: repeat rounds for this time, together with `hours`; default one round. */
  minutes: {
    flag: '--minutes <number>',
    help: 'burn-in: repeats rounds for this long; 0.5 is half a minute',
    kind: above(0),
  },
  hours: { flag: '--hours <number>', help: 'the same in hours', kind: above(0) },
  /** Hosts of a cluster, as a remote shell names them; default this machine, or the job's hosts. */
  hosts: { kind: list(text()) },
  /** Default ssh. */
  remoteShell: {
    flag: '--remote-shell <command>',
    help: 'with -H: command that reaches the hosts, such as "ssh -p 2222"',
    kind: text(),
  },
});

export type CheckGiven = Given<typeof checkTable>;
