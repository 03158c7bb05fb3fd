// One run of `gradlink train` as a job of its own, for the styles that compare several.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';

import { endingSignals, Interrupted, type Io } from '../io.js';
import { environmentFor, readProgress, type ProgressMessage } from '../progress/messages.js';
import { openOwnFile, writeOwnFile } from '../../files/index.js';
import { LineSplitter } from '../../launch/line-splitter.js';
import { startWatchdog } from '../../launch/watchdog.js';
import { parseReport } from '../../results/read-report.js';
import { failedCase } from '../../results/case.js';
import type { CaseIdentity, CaseResult } from '../../results/result.js';
import { packageFile } from '../../package-folder.js';

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
  /** Holds both, and goes with a run whose starter is killed. */
  readonly scratch?: string;
}

const program = (): string => packageFile('bench/gradlink.js');
const keptLength = 2000;
/** The same in all processes of a run on this host, and in no other. */
const runVariable = 'GRADLINK_TRAIN_RUN';
const graceMs = 5000;

/**
 * @param onProgress gets how far the run is; absent: it is not asked to tell
 * @throws Interrupted
 */
export async function runTrainJob(
  job: TrainJob,
  io: Io,
  onProgress?: (message: ProgressMessage) => void,
): Promise<CaseResult> {
  const { workers, servers, launch, train, identity, reportFile, logFile } = job;
  const places = ['-n', String(workers), '-s', String(servers)];
  const command = [process.execPath, program(), 'train', ...train];
  // Not to a file: rank 0 may run on another host.
  const report = ['--format', 'json'];
  const log = createWriteStream(logFile, { fd: openOwnFile(logFile) });
  const run = randomUUID();
  const watchdog = startWatchdog(`${runVariable}=${run}`, graceMs, job.scratch);
  const child = spawn(
    process.execPath,
    [program(), 'launch', ...places, ...launch, ...command, ...report],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...environmentFor(io.env, onProgress !== undefined), [runVariable]: run },
    },
  );
  let received: NodeJS.Signals | undefined;
  const pass = (signal: NodeJS.Signals): void => {
    received = signal;
    child.kill(signal);
  };
  for (const signal of endingSignals) io.on(signal, pass);
  let last = '';
  let printed = '';
  const keep = (text: string): void => {
    log.write(text);
    last = (last + text).slice(-keptLength);
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    keep(text);
  });
  const lines = new LineSplitter((line) => {
    const message = onProgress === undefined ? undefined : readProgress(line);
    if (message === undefined) keep(line.toString());
    else onProgress?.(message);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    lines.write(chunk);
  });
  child.stderr.on('end', () => {
    lines.end();
  });
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
    return withParameters(takeReport(printed, reportFile), identity);
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    return failedCase(identity, error);
  } finally {
    watchdog.dismiss();
    for (const signal of endingSignals) io.off(signal, pass);
  }
}

/** The case that a run printed as its report, which is kept. */
function takeReport(printed: string, reportFile: string): CaseResult {
  // What else was printed came before.
  const report = printed.slice(/^\{/m.exec(printed)?.index ?? 0);
  const [measured] = parseReport(report, 'what the run printed').cases;
  if (measured === undefined) throw new Error('its report is empty');
  writeOwnFile(reportFile, [report]);
  return measured;
}

export function withParameters(measured: CaseResult, { parameters }: CaseIdentity): CaseResult {
  return { ...measured, parameters: { ...measured.parameters, ...parameters } };
}
