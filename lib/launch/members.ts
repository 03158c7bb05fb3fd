// The processes of a job as those see them that watch over it, on this host or another.
import type { Readable } from 'node:stream';

import type { Role } from './job.js';

export interface Member {
  /** Absent for what starts processes in the launcher's stead, `mpirun` for example. */
  readonly role?: Role;
  /** Number among those of its role. */
  readonly index: number;
  readonly label: string;
  readonly pid: number | undefined;
  /** Where it runs, unless on the launcher's host. */
  readonly host?: string;
}

/** How a process ended. */
export interface Ending {
  readonly member: Member;
  /** 128 + signal where one killed it. */
  readonly exitCode: number;
  /** `exited with status 3`, `was killed by SIGSEGV`, `could not be started: …` */
  readonly what: string;
}

/** Processes that something else started for the job: those of mpirun and srun. */
export interface RemoteMembers {
  /** Called once, before anything is started. */
  watch(events: {
    started(member: Member, stdout: Readable, stderr: Readable): void;
    ended(ending: Ending): void;
  }): void;
  /** Asks them to end; a second time: to do so at once. */
  end(which: 'servers' | 'all'): void;
  /** How many are there. */
  readonly count: number;
  close(): void;
}
