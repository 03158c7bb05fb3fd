// The benchmark behind `npm run bench:gpu`: what this machine's GPUs reach of what they could.
import { failedCase, waivedCase } from '../../lib/results/case.js';
import type { CaseResult, Report } from '../../lib/results/result.js';
import { mebibyte } from '../../lib/results/units.js';
import { integer } from '../../lib/checks.js';
import { describeGpus } from '../../lib/measure/machine/gpu-environment.js';
import { readMachine } from '../../lib/measure/machine/gpus.js';
import {
  givenOptions,
  headOf,
  Steps,
  type RunEvents,
  type RunOptions,
} from '../../lib/measure/common-run.js';
import { flag, whole } from '../../lib/options/kinds.js';
import { optionTable, type OptionsOf } from '../../lib/options/table.js';
import { ncclOnGpus, ncclOnOneGpu, storeOnGpu } from './commands.js';
import { besideNcclTests, besideNvbandwidth } from './compared.js';
import { hostCopies, insideGpu } from './copies.js';
import { reachedCase, type Reached } from './target.js';

export const gpuTable = optionTable({
  /** The GPU of all that needs one; default 0. */
  gpu: {
    flag: '--gpu <n>',
    help: 'the GPU of all that needs one',
    kind: whole({ min: 0 }),
    default: 0,
  },
  /** Small arrays and few samples: proves that everything runs, and measures nothing. */
  quick: {
    flag: '--quick',
    help: 'small arrays and few samples: proves that everything runs, measures nothing',
    kind: flag,
    default: false,
  },
});

export interface GpuTargetsOptions extends RunOptions, OptionsOf<typeof gpuTable> {}

/** The whole run; what would begin later is waived. */
const longestMs = 460_000;
/** nvbandwidth's cases that one GPU has. */
const copyCases = [
  'host_to_device_memcpy_ce',
  'device_to_host_memcpy_ce',
  'host_to_device_bidirectional_memcpy_ce',
  'device_to_host_bidirectional_memcpy_ce',
  'device_local_copy',
  'host_to_device_memcpy_sm',
  'device_to_host_memcpy_sm',
  'host_to_device_bidirectional_memcpy_sm',
  'device_to_host_bidirectional_memcpy_sm',
];

/**
 * Measures copies, sums, an optimizer's step, a store and NCCL. What fails is a case, and the rest goes on.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver
 */
export async function run(
  options: GpuTargetsOptions = {},
  events: RunEvents = {},
): Promise<Report> {
  const given = givenOptions(gpuTable, options);
  const { gpu, quick } = given;
  const machine = readMachine();
  integer(gpu, 'gpu', 0, machine.gpus.length - 1);
  const all = machine.gpus.map(({ ordinal }) => ordinal);
  const samples = quick ? 2 : 9;
  const count = ((quick ? 1 : 512) * mebibyte) / Float32Array.BYTES_PER_ELEMENT;
  const copies = { machine, gpu, count, samples, loops: quick ? 2 : 16 };
  const end = performance.now() + longestMs;
  const left = (): number => Math.max(end - performance.now(), 1);
  const command = {
    gpu,
    quick,
    samples,
    within: (milliseconds: number): number => Math.round(Math.min(milliseconds, left())),
  };
  const named = async (reached: Promise<readonly Reached[]>): Promise<CaseResult[]> =>
    (await reached).map((one) => reachedCase(gpu, one));
  const ranks = `${all.length} rank${all.length === 1 ? '' : 's'}`;
  const nccl = `NCCL all_reduce, ${ranks}, one on each GPU`;
  const parts: readonly (readonly [string, () => CaseResult[] | Promise<CaseResult[]>])[] = [
    ['host-device copies', () => named(hostCopies(copies))],
    ['inside the GPU', () => named(insideGpu(copies))],
    ['store', () => storeOnGpu(command)],
    [nccl, () => ncclOnGpus(nccl, all, command)],
    ['NCCL, several ranks on one GPU', () => ncclOnOneGpu(command)],
    ...copyCases.map(
      (name) => [`${name}, beside nvbandwidth`, () => besideNvbandwidth(name, command)] as const,
    ),
    ['all_reduce, beside nccl-tests', () => besideNcclTests(all, command)],
  ];
  const head = headOf('gpu', given, {}, describeGpus(machine.gpus));
  events.onStart?.(head, []);
  const steps = new Steps(events, parts.length);
  const cases: CaseResult[] = [];
  for (const [name, measure] of parts) {
    let results: CaseResult[];
    try {
      results =
        left() > 1
          ? await measure()
          : [waivedCase({ name, parameters: { gpu } }, 'the eight minutes of a run were over')];
    } catch (error) {
      results = [failedCase({ name, parameters: { gpu } }, error)];
    }
    cases.push(...results);
    events.onCases?.(results);
    steps.advance();
  }
  return { ...head, cases };
}
