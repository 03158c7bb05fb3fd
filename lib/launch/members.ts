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

/**
 * exited: by itself; killed: by a signal; lost: nothing more is heard of it; ended: by what started it, so that the
 * cause is elsewhere.
 */
export const manners = ['exited', 'killed', 'lost', 'ended'] as const;
export type Manner = (typeof manners)[number];

/** How a process ended. */
export interface Ending {
  readonly member: Member;
  /** 128 + signal where one killed it. */
  readonly exitCode: number;
  /** `exited with status 3`, `was killed by SIGSEGV`, `could not be started: …` */
  readonly what: string;
  readonly manner: Manner;
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
  /** How many have come and not ended. */
  readonly busy: number;
  /** Those that were given up because nothing came from them, or that have said nothing since they were asked to end. */
  readonly silent: readonly Member[];
  /** Connections that proved nothing, and may have kept others away; 0 once all have come. */
  readonly crowd: number;
  /**
   * Lets those that failed or were ended go from what started them. Until then it takes them for alive: it would end the
   * others in its own, hasty way.
   */
  release(): void;
  close(): void;
}
