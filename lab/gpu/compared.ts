// Our figure of a case beside NVIDIA's of the same case: the ratio is the share.
import { waivedCase } from '../../lib/results/case.js';
import { hasMeasurement, type CaseResult } from '../../lib/results/result.js';
import { reportOf, type CommandOptions } from './commands.js';
import {
  allReducePerf,
  findRival,
  nvbandwidth,
  readAllReducePerf,
  readNvbandwidth,
  runRival,
  type Rival,
} from './rivals.js';
import { reachedCase } from './target.js';

const target = 0.95;
const patienceMs = 60_000;

function missing(gpu: number, name: string, { program, variable }: Rival): CaseResult[] {
  const reason = `no ${program} here: put it in PATH, or name its file in ${variable}`;
  return [waivedCase({ name, parameters: { gpu } }, reason)];
}

/** One of nvbandwidth's cases, by ours and by it. */
export function besideNvbandwidth(testcase: string, options: CommandOptions): CaseResult[] {
  const { gpu, quick, samples } = options;
  const name = `${testcase}, beside nvbandwidth`;
  const file = findRival(nvbandwidth);
  if (file === undefined) return missing(gpu, name, nvbandwidth);
  const size = quick ? 8 : 512;
  const theirs = readNvbandwidth(
    runRival(
      file,
      ['-t', testcase, '-b', String(size), '-i', String(samples)],
      options.within(patienceMs),
      onlyGpu(gpu),
    ),
    testcase,
  );
  const { cases } = reportOf(
    [
      ...['p2p', '-t', testcase, '-b', String(size), '-i', String(samples)],
      ...['--gpus', String(gpu)],
    ],
    options.within(patienceMs),
  );
  const ours = cases.find(hasMeasurement);
  if (ours === undefined) throw new Error(`gradlink p2p -t ${testcase} measured nothing`);
  return [
    reachedCase(gpu, {
      name,
      bytes: ours.bytes,
      seconds: ours.samplesSeconds,
      limit: { bytesPerSecond: theirs, basis: 'nvbandwidth, in this run' },
      target,
    }),
  ];
}

/** The GPU alone, as the driver numbers it for this process. */
function onlyGpu(gpu: number): Readonly<Record<string, string>> {
  const visible = process.env.CUDA_VISIBLE_DEVICES?.split(',') ?? [];
  return { CUDA_VISIBLE_DEVICES: visible[gpu] ?? String(gpu) };
}

/** An all-reduce of all GPUs, by ours and by nccl-tests. */
export function besideNcclTests(gpus: readonly number[], options: CommandOptions): CaseResult[] {
  const { gpu, quick, samples } = options;
  const name = `all_reduce of ${gpus.length}, beside nccl-tests`;
  const file = findRival(allReducePerf);
  if (file === undefined) return missing(gpu, name, allReducePerf);
  const bytes = (quick ? 1 : 256) * 2 ** 20;
  const size = ['-b', String(bytes), '-e', String(bytes)];
  const theirs = readAllReducePerf(
    runRival(
      file,
      [...size, '-g', String(gpus.length), '-n', String(samples), '-w', '5'],
      options.within(patienceMs),
    ),
    bytes,
  );
  const { cases } = reportOf(
    [
      ...['collectives', 'all_reduce', ...size, '--gpus', gpus.join(',')],
      ...['-T', '30', '--iters', String(samples), '-w', '5'],
    ],
    options.within(patienceMs),
  );
  return cases.filter(hasMeasurement).map((ours) => {
    const placement = String(ours.parameters.placement);
    const inPlace = placement === 'in-place';
    if (inPlace && gpus.length === 1) {
      const identity = { name: `${name}, ${placement}`, parameters: { gpu } };
      return waivedCase(identity, 'one rank alone moves nothing in place');
    }
    return reachedCase(gpu, {
      name: `${name}, ${placement}`,
      bytes: ours.bytes,
      seconds: ours.samplesSeconds,
      limit: {
        bytesPerSecond: inPlace ? theirs.inPlace : theirs.outOfPlace,
        basis: "nccl-tests' algbw, in this run",
      },
      target,
    });
  });
}
