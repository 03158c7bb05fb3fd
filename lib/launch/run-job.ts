// Starts a job's processes, watches them, and makes sure that none outlives the job.
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

import { bindToCores } from './cores.js';
import { closing, JobOutput, type OutputOptions } from './output.js';
import type { Readable } from 'node:stream';
import type { ProcessPlan } from './job.js';
import type { Ending, Member, RemoteMembers } from './members.js';
import { jobProcesses, signalProcess, startFailure } from './processes.js';
import { causeDelay, originDelayMs, Progress } from './progress.js';
import { startWatchdog } from './watchdog.js';
import { after } from '../time.js';

export interface Failure extends Ending {
  /** Its last lines on either stream; empty if they are still visible. */
  readonly lastLines: readonly string[];
}

/** Why a job was ended early. */
export type Interruption =
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'timeout'; readonly timeoutMs: number }
  | { readonly kind: 'failure'; readonly failure: Failure };

export interface JobResult {
  /** 0; the status of the first failed process (128 + signal if killed); 124 after the time limit. */
  readonly exitCode: number;
  readonly interruption?: Interruption;
  /** Failed workers that the job continued without. */
  readonly tolerated: readonly Failure[];
  /** Processes that ended by themselves or when asked. */
  readonly endings: readonly Ending[];
  /** Processes whose host or link is lost, as far as known. */
  readonly lost: readonly Member[];
  /** Processes that survived SIGKILL for a second. */
  readonly survivors: readonly number[];
  readonly midLine: boolean;
  /** Unproven connections to the launcher, if processes of the job are missing. */
  readonly crowd: number;
}

export interface JobOptions {
  /** `NAME=VALUE` in the environment of each process of the job and of no other. */
  readonly mark: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly output: OutputOptions;
  readonly signals: {
    on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
    off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  };
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** The time limit of the whole job. */
  readonly timeoutMs?: number;
  /** Number of workers. Once all have ended well, the servers are ended. */
  readonly workers: number;
  readonly tolerateWorkerLoss: boolean;
  /** Processes that the started ones start elsewhere; absent: none. */
  readonly remote?: RemoteMembers;
  /** Called at once when a process of this host ends. */
  readonly onEnding?: (ending: Ending) => void;
}

const caughtSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Passed on to the processes: a scheduler may use them to warn before an allocation ends. */
export const passedSignals = ['SIGUSR1', 'SIGUSR2'] as const;
const timeoutExitCode = 124; // as timeout(1)
const signalBase = 128;
const pollMs = 20;
const killTimeoutMs = 1000;

class Job {
  private readonly output: JobOutput;
  private readonly progress: Progress;
  private readonly groups = new Set<number>();
  private readonly children: { readonly process: ChildProcess; readonly plan: ProcessPlan }[] = [];
  private readonly exits: Promise<void>[] = [];
  private running = 0;
  private stopping = false;
  private waitsForOrigin = false;
  private exitCode = 0;
  private interruption: Interruption | undefined;
  private finish: () => void = () => undefined;
  private hurry: () => void = () => undefined;
  private readonly callOffs: (() => void)[] = [];

  constructor(private readonly options: JobOptions) {
    this.output = new JobOutput(options.output);
    this.progress = new Progress(options.workers, options.tolerateWorkerLoss);
  }

  async run(plans: readonly ProcessPlan[]): Promise<JobResult> {
    const { mark, signals, graceMs, timeoutMs, remote } = this.options;
    const finished = new Promise<void>((resolve) => (this.finish = resolve));
    const hurried = new Promise<void>((resolve) => (this.hurry = resolve));
    const onSignal = (signal: NodeJS.Signals): void => {
      // The first signal asks, the second kills.
      if (this.interruption?.kind === 'signal') this.hurry();
      this.interrupt({ kind: 'signal', signal }, signalBase + constants.signals[signal]);
    };
    for (const signal of caughtSignals) signals.on(signal, onSignal);
    for (const signal of passedSignals) signals.on(signal, this.pass);
    const watchdog = startWatchdog(mark, graceMs);
    if (timeoutMs !== undefined) {
      this.after(timeoutMs, () => {
        this.interrupt({ kind: 'timeout', timeoutMs }, timeoutExitCode);
      });
    }
    remote?.watch({
      started: (member, stdout, stderr) => {
        this.output.attach(member, 'stdout', stdout);
        this.output.attach(member, 'stderr', stderr);
      },
      ended: (ending) => {
        this.ended(ending);
      },
    });
    try {
      try {
        for (const plan of plans) this.start(plan);
      } catch (error) {
        // End the processes that have started.
        await this.endProcesses(hurried);
        throw error;
      }
      await finished;
      await this.endRemote(hurried);
      const silent = remote?.silent ?? [];
      const crowd = remote?.crowd ?? 0;
      const survivors = await this.endProcesses(hurried);
      remote?.close();
      await this.drain();
      return this.result({ survivors, crowd }, silent);
    } finally {
      for (const callOff of this.callOffs) callOff();
      for (const signal of caughtSignals) signals.off(signal, onSignal);
      for (const signal of passedSignals) signals.off(signal, this.pass);
      remote?.close();
      watchdog.dismiss();
    }
  }

  /** Sent to the processes only: their children may not handle the signal and would die. */
  private readonly pass = (signal: NodeJS.Signals): void => {
    for (const { process: child } of this.children) {
      const ended = child.exitCode !== null || child.signalCode !== null;
      if (child.pid !== undefined && !ended) signalProcess(child.pid, signal);
    }
  };

  private start(plan: ProcessPlan): void {
    const [program, ...args] = plan.command;
    this.running += 1;
    const child = spawn(program, args, {
      // Its own process group, so that its children can be ended with it.
      detached: true,
      stdio: streams(plan.inherited),
      env: { ...this.options.env, ...plan.env },
    });
    this.children.push({ process: child, plan });
    const { pid } = child;
    const { role, index, label } = plan;
    const member: Member = { ...(role === undefined ? {} : { role }), index, label, pid };
    // Missing if the process could not be started for lack of descriptors, despite the types.
    const { stdout, stderr } = child as Partial<ChildProcess>;
    if (stdout) this.output.attach(member, 'stdout', stdout);
    if (stderr) this.output.attach(member, 'stderr', stderr);
    if (pid !== undefined) {
      this.groups.add(pid);
      if (plan.cores !== undefined) bindToCores(pid, plan.cores);
    }
    let gone: () => void = () => undefined;
    this.exits.push(new Promise((resolve) => (gone = resolve)));
    child.on('error', (error: NodeJS.ErrnoException) => {
      this.childEnded({ member, ...startFailure(program, error), manner: 'exited' });
      gone();
    });
    child.on('exit', (code, signal) => {
      if (signal !== null) {
        const exitCode = signalBase + constants.signals[signal];
        this.childEnded({ member, exitCode, what: `was killed by ${signal}`, manner: 'killed' });
      } else {
        this.childEnded({
          member,
          exitCode: code ?? 0,
          what: `exited with status ${String(code)}`,
          manner: 'exited',
        });
      }
      gone();
    });
  }

  private childEnded(ending: Ending): void {
    this.running -= 1;
    // Before anything slow.
    this.options.onEnding?.(ending);
    if (ending.member.pid !== undefined) this.leaveGroup(ending.member.pid);
    this.ended(ending);
    if (this.running === 0 && this.progress.undecided === undefined) this.finish();
  }

  private ended(ending: Ending): void {
    this.progress.ended(ending);
    if (this.progress.undecided !== undefined) {
      const nobodyLeft = this.running === 0 && this.options.remote === undefined;
      const delayMs = nobodyLeft ? 0 : causeDelay(ending);
      const decide = (): void => {
        this.decide();
      };
      // Among processes that ended at the same moment one is the cause: wait until all are known.
      if (delayMs > 0) this.after(delayMs, decide);
      else setImmediate(decide);
    }
    if (this.progress.workersDone) this.stopServers();
  }

  private decide(): void {
    const found = this.progress.undecided;
    if (found === undefined) return;
    const cause = this.originOf(found);
    if (cause === undefined) {
      if (this.waitsForOrigin) return;
      this.waitsForOrigin = true;
      this.after(originDelayMs, () => {
        this.blame(found);
      });
    } else this.blame(cause);
  }

  /**
   * If a process exited because it lost a rank, that rank is the cause and may report its own error a moment later.
   *
   * @returns undefined while that report may still come
   */
  private originOf(found: Ending): Ending | undefined {
    let cause = found;
    for (const seen = new Set([found]); cause.manner === 'exited'; seen.add(cause)) {
      const rank = this.output.lostRank(cause.member.label);
      if (rank === undefined || rank >= this.options.workers) break;
      const origin = this.progress.workerEnding(rank);
      if (origin === undefined) return this.running > 0 ? undefined : found;
      // It ended well, was ended, or they lost one another.
      if (origin.exitCode === 0 || origin.manner !== 'exited') break;
      if (seen.has(origin)) return found;
      cause = origin;
    }
    return cause;
  }

  private blame(cause: Ending): void {
    // Its last lines may still be in the pipe: lastLines is read after the job.
    this.interrupt({ kind: 'failure', failure: { ...cause, lastLines: [] } }, cause.exitCode);
  }

  /** The workers have finished: servers end by themselves, or are ended after the grace period. */
  private stopServers(): void {
    if (this.stopping) return;
    this.stopping = true;
    this.progress.stopping = true;
    this.options.remote?.end('servers');
    for (const { process, plan } of this.children) {
      if (plan.role === 'server' && process.pid !== undefined) {
        if (process.exitCode === null && process.signalCode === null) process.kill('SIGTERM');
      }
    }
    this.after(this.options.graceMs, this.finish);
  }

  private after(milliseconds: number, what: () => void): void {
    this.callOffs.push(after(milliseconds, what));
  }

  /**
   * Background processes end with their leader. The group is forgotten once empty, because its number may be reused.
   */
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

  /** Keepers end the processes on other hosts; their starter then ends by itself. */
  private async endRemote(hurried: Promise<void>): Promise<void> {
    const { remote, graceMs } = this.options;
    if (remote === undefined) return;
    remote.end('all');
    const state = { hurry: false };
    void hurried.then(() => {
      state.hurry = true;
      remote.end('all');
    });
    const deadlineMs = graceMs + killTimeoutMs;
    await waitUntil(() => remote.busy === 0, deadlineMs);
    remote.release();
    // The starter ends by itself then with its remote daemons; a signal could cut them off.
    const begun = this.progress.endings.some(({ member }) => member.role !== undefined);
    if (begun) await waitUntil(() => this.running === 0 || state.hurry, deadlineMs);
  }

  /** SIGTERM, the grace period, SIGKILL; returns at once when nothing is left. */
  private async endProcesses(hurried: Promise<void>): Promise<readonly number[]> {
    const rest = (): number[] => jobProcesses(this.groups, this.options.mark);
    const state = { hurry: false };
    void hurried.then(() => (state.hurry = true));
    for (const pid of rest()) signalProcess(pid, 'SIGTERM');
    const deadline = performance.now() + this.options.graceMs;
    while (!state.hurry && performance.now() < deadline && rest().length > 0) await sleep(pollMs);
    const lastDeadline = performance.now() + killTimeoutMs;
    for (let left = rest(); ; left = rest()) {
      if (left.length === 0 || performance.now() > lastDeadline) return left;
      for (const pid of left) signalProcess(pid, 'SIGKILL');
      await sleep(pollMs);
    }
  }

  /** Waits until all output has arrived. */
  private async drain(): Promise<void> {
    const streams = this.children
      .flatMap(({ process }) => [process.stdout, process.stderr] as (Readable | null | undefined)[])
      .map((stream) => stream ?? null);
    const state = { open: true };
    const closed = Promise.all([...streams.map(closing), ...this.exits, this.output.ended()]).then(
      () => (state.open = false),
    );
    do {
      const cancel = new AbortController();
      const expired = sleep(killTimeoutMs, undefined, { signal: cancel.signal });
      await Promise.race([closed, expired.catch(() => undefined)]);
      cancel.abort();
      // Wait for a slow reader, but not for a pipe that a survivor holds open.
    } while (state.open && this.output.blocked);
    for (const stream of streams) stream?.destroy();
    await this.output.close();
  }

  /** Connections also close when mpirun ends the others after a failure, so they count only without another failure. */
  private lostWithCause(): Member[] {
    const { interruption } = this;
    if (interruption?.kind !== 'failure' || interruption.failure.manner !== 'lost') return [];
    return this.progress.endings
      .filter(({ manner }) => manner === 'lost')
      .map(({ member }) => member);
  }

  private result(
    left: Pick<JobResult, 'survivors' | 'crowd'>,
    silent: readonly Member[],
  ): JobResult {
    const withLines = (ending: Ending): Failure => ({
      ...ending,
      lastLines: this.output.unseenLines(ending.member.label),
    });
    const { interruption } = this;
    const known: Interruption | undefined =
      interruption?.kind === 'failure'
        ? { kind: 'failure', failure: withLines(interruption.failure) }
        : interruption;
    return {
      exitCode: this.exitCode,
      ...(known === undefined ? {} : { interruption: known }),
      tolerated: this.progress.tolerated.map(withLines),
      endings: this.progress.endings,
      lost: [...this.lostWithCause(), ...silent],
      midLine: this.output.midLine,
      ...left,
    };
  }
}

async function waitUntil(condition: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!condition() && performance.now() < deadline) await sleep(pollMs);
}

/** Empty standard input, piped output, and the descriptors to inherit under the same numbers. */
function streams(inherited: readonly number[] = []): ('ignore' | 'pipe' | number)[] {
  const stdio: ('ignore' | 'pipe' | number)[] = ['ignore', 'pipe', 'pipe'];
  for (const descriptor of inherited) {
    while (stdio.length < descriptor) stdio.push('ignore');
    stdio[descriptor] = descriptor;
  }
  return stdio;
}

/**
 * Runs a job to its end. A signal to the launcher, the time limit or a failing process ends all of it: SIGTERM first,
 * SIGKILL after the grace period, to every process of the job including background ones. Servers get SIGTERM once all
 * workers have ended well.
 */
export async function runJob(
  plans: readonly ProcessPlan[],
  options: JobOptions,
): Promise<JobResult> {
  return new Job(options).run(plans);
}
