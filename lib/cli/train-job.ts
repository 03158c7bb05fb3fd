// One run of `gradlink train` as a job of its own, for the styles that compare several.
import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { finished } from 'node:stream/promises';

import type { Io } from './io.js';
import { packageRoot } from './package-root.js';
import { readReport } from '../measure/read-report.js';
import { failedCase } from '../measure/case.js';
import type { CaseIdentity, CaseResult } from '../measure/result.js';

export interface TrainJob {
  readonly workers: number;
  readonly servers: number;
  /** Arguments of `gradlink launch` besides its numbers of processes. */
  readonly launch: readonly string[];
  /** Arguments of `gradlink train` besides those for its report. */
  readonly train: readonly string[];
  /** What the case is where the run fails, and what is added to its parameters where it does not. */
  readonly identity: CaseIdentity;
  readonly reportFile: string;
  readonly logFile: string;
}

/** Thrown when a signal ends the whole of it. */
export class Interrupted extends Error {
  constructor(readonly signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
  }
}

const program = (): string => fileURLToPath(new URL('bench/gradlink.js', packageRoot()));
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const keptLength = 2000;

/** @throws Interrupted */
export async function runTrainJob(job: TrainJob, io: Io): Promise<CaseResult> {
  const { workers, servers, launch, train, identity, reportFile, logFile } = job;
  const places = ['-n', String(workers), '-s', String(servers)];
  const command = [process.execPath, program(), 'train', ...train];
  const report = ['--format', 'json', '--output', reportFile];
  const child = spawn(
    process.execPath,
    [program(), 'launch', ...places, ...launch, ...command, ...report],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...io.env } },
  );
  let received: NodeJS.Signals | undefined;
  const pass = (signal: NodeJS.Signals): void => {
    received = signal;
    child.kill(signal);
  };
  for (const signal of signals) io.on(signal, pass);
  const log = createWriteStream(logFile);
  let last = '';
  const keep = (chunk: Buffer): void => {
    log.write(chunk);
    last = (last + chunk.toString()).slice(-keptLength);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    log.end();
    await finished(log);
    if (received !== undefined) throw new Interrupted(received);
    if (code !== 0) {
      const lines = last.trimEnd().split('\n').slice(-3).join(' | ');
      return failedCase(identity, new Error(`exit status ${String(code)}: ${lines}`));
    }
    const [measured] = readReport(reportFile).cases;
    if (measured === undefined) return failedCase(identity, new Error('its report is empty'));
    return withParameters(measured, identity);
  } finally {
    for (const signal of signals) io.off(signal, pass);
  }
}

export function withParameters(measured: CaseResult, { parameters }: CaseIdentity): CaseResult {
  return { ...measured, parameters: { ...measured.parameters, ...parameters } };
}
