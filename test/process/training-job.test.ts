// The job of docs/job.md, in short: trained with 1, 2 and 4 ranks on two hosts, resumed on another number of ranks, and with
// one host cut off in the middle.
import { execFile, type ExecFileException } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { expect, it } from 'vitest';

import { folderOfAllTests } from '../support/folders.js';
import { noHosts } from '../support/hosts.js';
import { missing } from '../support/launching.js';
import { root } from '../support/walks.js';

interface Job {
  readonly id: string;
  readonly ranks: readonly number[];
  readonly starts: readonly { step: number; samples: number; from?: number }[];
  readonly samples: number;
  readonly accuracy: number;
  readonly beside: { readonly distance: number };
  readonly stopped?: { readonly exitCode: number };
  readonly cut?: Readonly<
    Record<'at' | 'blamedAt' | 'resumedAt' | 'caughtUpAt' | 'lostSeconds', number>
  >;
}

interface Result {
  readonly target: number;
  readonly steps: number;
  readonly globalBatch: number;
  readonly jobs: readonly Job[];
  readonly left: Readonly<Record<string, number>>;
}

let scratch = '';
folderOfAllTests((made) => (scratch = made));

it(
  'learns alike however many ranks train, and without a host that is lost',
  { timeout: 600_000 },
  async ({ skip }) => {
    const reason = noHosts() ?? missing(['mpirun.openmpi']);
    if (reason !== undefined) skip(reason);
    const program = join(root, 'lab/job/run.js');
    const run = (...args: string[]) =>
      promisify(execFile)(process.execPath, [program, '--output', scratch, ...args]);
    await run('--quick');
    const result = JSON.parse(readFileSync(join(scratch, 'job.json'), 'utf8')) as Result;
    const { jobs, steps, globalBatch, target, left } = result;
    expect(jobs.map(({ id, ranks }) => [id, ranks])).toEqual([
      ['steady-1', [1]],
      ['steady-2', [2]],
      ['steady-4', [4]],
      ['resumed', [2, 3]],
      ['cut', [4, 2]],
    ]);
    for (const { id, accuracy, samples, beside } of jobs) {
      expect(accuracy, id).toBeGreaterThanOrEqual(target);
      expect(samples, id).toBe(steps * globalBatch);
      // Rounding can grow to hundredths between numbers of ranks.
      expect(beside.distance, id).toBeLessThan(0.05);
    }
    const [resumed, cutOff] = jobs.slice(3) as [Job, Job];
    expect(resumed.stopped).toMatchObject({ exitCode: 130 });
    for (const { starts, ranks, beside } of [resumed, cutOff]) {
      const { step, samples, from } = starts[1]!;
      expect(step).toBeGreaterThan(0);
      expect(samples).toBe(step * globalBatch);
      expect(from).toBe(ranks[0]);
      // From the job that was not disturbed: other samples, or an optimizer that begins anew, make hundredths at once.
      expect(beside.distance).toBeLessThan(1e-3);
    }
    const { at, blamedAt, resumedAt, caughtUpAt, lostSeconds } = cutOff.cut!;
    const times = [at, blamedAt, resumedAt, caughtUpAt];
    expect(times).toEqual([...times].sort((one, other) => one - other));
    expect(lostSeconds).toBeCloseTo(caughtUpAt - at);
    expect(left).toEqual({ processes: 0, namespaces: 0, segments: 0 });

    const page = readFileSync(join(scratch, 'job.md'), 'utf8');
    for (const [, picture] of page.matchAll(/\]\((job-\w+\.svg)\)/g)) {
      expect(readFileSync(join(scratch, picture!), 'utf8')).toMatch(/^<svg/);
    }

    const wanting = join(scratch, 'wanting.json');
    writeFileSync(wanting, JSON.stringify({ ...result, target: 0.999, left: { processes: 2 } }));
    const failed = (await run(wanting).catch((error: unknown) => error)) as ExecFileException;
    expect(failed.code).toBe(1);
    // A line for each job, and for what was left.
    expect(failed.stderr?.trimEnd().split('\n')).toHaveLength(jobs.length + 1);
  },
);
