// What the launcher and the keeper of a rank on another host say to each other over TCP: frames of a type and a payload.
// line.ts carries them.
import type { Manner } from './members.js';

export const frameTypes = [
  'challenge', // launcher to keeper: random bytes
  'hello', // keeper to launcher: random bytes of its own, then Hello
  'welcome', // launcher to keeper: Welcome
  'stdout', // keeper to launcher: bytes
  'stderr',
  'exit', // keeper to launcher: Exit; its process has ended, and all that this one started and wrote is through
  'seen', // launcher to keeper: it knows of the exit
  'end', // launcher to keeper: end the process; a second one: at once
  'beat', // both: still here
  'died', // keeper to launcher: Exit; its process has just failed, and its exit will follow if the keeper lives
] as const;
export type FrameType = (typeof frameTypes)[number];

export interface Hello {
  /** MPI rank. */
  readonly place: number;
  readonly host: string;
  readonly pid: number;
}

export interface Welcome {
  /** Which of this host's cores its process is to run on: share `localRank` of `localSize`; absent: as its starter says. */
  readonly localRank?: number;
  readonly localSize?: number;
  /** Of those `localSize` the workers, which come first. */
  readonly localWorkers?: number;
  readonly graceMs: number;
  /** Silence of this length means that the other side is lost. */
  readonly silenceMs: number;
}

export interface Exit {
  readonly pid?: number;
  readonly exitCode: number;
  readonly what: string;
  readonly manner: Manner;
}

/** The JSON of a frame; undefined where it is not JSON, which ends the connection. */
export function parseFrame(payload: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(payload.toString());
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
