// Starts a job's processes, watches them, and sees to it that none outlives the job.
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

import { bindToCores } from './cores.js';
import { closing, JobOutput, type OutputOptions } from './output.js';
import type { ProcessPlan } from './job.js';
import { jobProcesses, signalProcess } from './processes.js';
import { startWatchdog } from './watchdog.js';

/** Why a job ended before its processes did. */
export type Interruption =
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'timeout'; readonly timeoutMs: number }
  | {
      readonly kind: 'failure';
      readonly label: string;
      readonly pid: number | undefined;
      /** `exited with status 3`, `was killed by SIGSEGV`, `could not be started: …` */
      readonly what: string;
      readonly lastLines: readonly string[];
    };

export interface JobResult {
  /** 0; that of the first process that failed (128 + signal where one killed it); 124 after the time limit. */
  readonly exitCode: number;
  readonly interruption?: Interruption;
  /** Processes that even SIGKILL did not end within a second. */
  readonly survivors: readonly number[];
}

export interface JobOptions {
  readonly jobId: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly output: OutputOptions;
  readonly signals: {
    on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
    off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  };
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** The whole job is ended after so many milliseconds. */
  readonly timeoutMs?: number;
}

const caughtSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const timeoutExitCode = 124; // as timeout(1)
const notFoundExitCode = 127; // as a shell
const notExecutableExitCode = 126;
const signalBase = 128;
const pollMs = 20;
const killPatienceMs = 1000;

class Job {
  private readonly output: JobOutput;
  private readonly groups = new Set<number>();
  private readonly children: ChildProcess[] = [];
  private running = 0;
  private exitCode = 0;
  private interruption: Interruption | undefined;
  private finish: () => void = () => undefined;
  private hurry: () => void = () => undefined;

  constructor(private readonly options: JobOptions) {
    this.output = new JobOutput(options.output);
  }

  async run(plans: readonly ProcessPlan[]): Promise<JobResult> {
    const { jobId, signals, graceMs, timeoutMs } = this.options;
    const finished = new Promise<void>((resolve) => (this.finish = resolve));
    const hurried = new Promise<void>((resolve) => (this.hurry = resolve));
    const onSignal = (signal: NodeJS.Signals): void => {
      // The first asks, the second no longer waits for an answer.
      if (this.interruption?.kind === 'signal') this.hurry();
      this.interrupt({ kind: 'signal', signal }, signalBase + constants.signals[signal]);
    };
    for (const signal of caughtSignals) signals.on(signal, onSignal);
    const watchdog = startWatchdog(jobId, graceMs);
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            this.interrupt({ kind: 'timeout', timeoutMs }, timeoutExitCode);
          }, timeoutMs);
    try {
      for (const plan of plans) this.start(plan);
      await finished;
      const survivors = await this.endProcesses(hurried);
      await this.drain();
      return {
        exitCode: this.exitCode,
        ...(this.interruption === undefined ? {} : { interruption: this.interruption }),
        survivors,
      };
    } finally {
      clearTimeout(timer);
      for (const signal of caughtSignals) signals.off(signal, onSignal);
      watchdog.dismiss();
    }
  }

  private start(plan: ProcessPlan): void {
    const [program, ...args] = plan.command;
    this.running += 1;
    const child = spawn(program, args, {
      // A process group of its own, so that what it starts can be ended with it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...this.options.env, ...plan.env },
    });
    this.children.push(child);
    this.output.attach(plan.label, 'stdout', child.stdout);
    this.output.attach(plan.label, 'stderr', child.stderr);
    if (child.pid !== undefined) {
      this.groups.add(child.pid);
      if (plan.cores !== undefined) bindToCores(child.pid, plan.cores);
    }
    child.on('error', (error: NodeJS.ErrnoException) => {
      const code = error.code === 'ENOENT' ? notFoundExitCode : notExecutableExitCode;
      this.ended(plan.label, child, code, `could not be started: ${error.message}`);
    });
    child.on('exit', (code, signal) => {
      if (signal !== null) {
        const status = signalBase + constants.signals[signal];
        this.ended(plan.label, child, status, `was killed by ${signal}`);
      } else {
        this.ended(plan.label, child, code ?? 0, `exited with status ${String(code)}`);
      }
    });
  }

  private ended(label: string, child: ChildProcess, exitCode: number, what: string): void {
    this.running -= 1;
    if (child.pid !== undefined) this.leaveGroup(child.pid);
    if (exitCode !== 0) {
      // Its last words may still be in the pipe: lastLines is read when the job is over.
      this.interrupt({ kind: 'failure', label, pid: child.pid, what, lastLines: [] }, exitCode);
    }
    if (this.running === 0) this.finish();
  }

  /** A rank's background processes end with it. Its group is forgotten once empty: the number may come again. */
  private leaveGroup(group: number): void {
    signalProcess(-group, 'SIGTERM');
    if (jobProcesses(new Set([group])).length === 0) this.groups.delete(group);
  }

  private interrupt(interruption: Interruption, exitCode: number): void {
    if (this.interruption !== undefined) return;
    this.interruption = interruption;
    this.exitCode = exitCode;
    this.finish();
  }

  /** SIGTERM, the grace period, SIGKILL; returns at once when nothing is left. */
  private async endProcesses(hurried: Promise<void>): Promise<readonly number[]> {
    const rest = (): number[] => jobProcesses(this.groups, this.options.jobId);
    const state = { hurry: false };
    void hurried.then(() => (state.hurry = true));
    for (const pid of rest()) signalProcess(pid, 'SIGTERM');
    const deadline = performance.now() + this.options.graceMs;
    while (!state.hurry && performance.now() < deadline && rest().length > 0) await sleep(pollMs);
    const lastDeadline = performance.now() + killPatienceMs;
    for (let left = rest(); ; left = rest()) {
      if (left.length === 0 || performance.now() > lastDeadline) return left;
      for (const pid of left) signalProcess(pid, 'SIGKILL');
      await sleep(pollMs);
    }
  }

  /** Waits until all that was written has come through. */
  private async drain(): Promise<void> {
    const streams = this.children.flatMap((child) => [child.stdout, child.stderr]);
    const state = { open: true };
    const closed = Promise.all(streams.map(closing)).then(() => (state.open = false));
    do {
      const cancel = new AbortController();
      const patience = sleep(killPatienceMs, undefined, { signal: cancel.signal });
      await Promise.race([closed, patience.catch(() => undefined)]);
      cancel.abort();
      // Lines that wait for a slow reader are waited for; a pipe that a survivor holds open is not.
    } while (state.open && this.output.blocked);
    for (const stream of streams) stream?.destroy();
    await this.output.close();
    if (this.interruption?.kind === 'failure') {
      const lastLines = this.output.lastLines(this.interruption.label);
      this.interruption = { ...this.interruption, lastLines };
    }
  }
}

/**
 * Runs a job to its end. A signal to the launcher, the time limit or a process that fails ends all of it: SIGTERM
 * first, SIGKILL after the grace period, to every process that belongs to the job, background ones included.
 */
export async function runJob(
  plans: readonly ProcessPlan[],
  options: JobOptions,
): Promise<JobResult> {
  return new Job(options).run(plans);
}
