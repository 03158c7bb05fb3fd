// The processes of a job as the code that watches them sees them, on this host or another.
import type { Readable } from 'node:stream';

import type { Role } from './job.js';

export interface Member {
  /** Absent for a starter such as `mpirun`. */
  readonly role?: Role;
  readonly index: number;
  readonly label: string;
  readonly pid: number | undefined;
  /** Absent on the launcher's host. */
  readonly host?: string;
}

/**
 * exited: by itself; killed: by a signal; lost: its host is silent; ended: by its starter, so the cause is elsewhere.
 */
export const manners = ['exited', 'killed', 'lost', 'ended'] as const;
export type Manner = (typeof manners)[number];

export interface Ending {
  readonly member: Member;
  /** 128 + signal where one killed it. */
  readonly exitCode: number;
  /** `exited with status 3`, `was killed by SIGSEGV`, `could not be started: …` */
  readonly what: string;
  readonly manner: Manner;
}

/** Processes started by mpirun or srun. */
export interface RemoteMembers {
  /** Called once, before the start. */
  watch(events: {
    started(member: Member, stdout: Readable, stderr: Readable): void;
    ended(ending: Ending): void;
  }): void;
  /** Asks them to end; a second call kills them. */
  end(which: 'servers' | 'all'): void;
  /** The number that are connected and have not ended. */
  readonly busy: number;
  /** Processes given up for silence, or silent since they were asked to end. */
  readonly silent: readonly Member[];
  /** Unproven connections that may have kept processes away; 0 once all are connected. */
  readonly crowd: number;
  /**
   * Lets failed or ended processes exit. Until then their starter takes them for alive: it would kill the others at
   * once.
   */
  release(): void;
  close(): void;
}
