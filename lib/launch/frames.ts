// The messages between the launcher and a keeper on another host: frames with a type and a payload, sent by line.ts.
import type { Manner } from './members.js';

export const frameTypes = [
  'challenge', // launcher to keeper: random bytes
  'hello', // keeper to launcher: random bytes of its own, then Hello
  'welcome', // launcher to keeper: Welcome
  'stdout', // keeper to launcher: bytes
  'stderr',
  'exit', // keeper to launcher: Exit; its process and its children have ended, and all output has been sent
  'seen', // launcher to keeper: exit received
  'end', // launcher to keeper: end the process; a second one kills it
  'beat', // both: heartbeat
  'died', // keeper to launcher: Exit; its process has just failed, `exit` follows if the keeper lives
] as const;
export type FrameType = (typeof frameTypes)[number];

export interface Hello {
  /** MPI rank. */
  readonly place: number;
  readonly host: string;
  readonly pid: number;
}

export interface Welcome {
  /**
   * The share of this host's cores that the process is bound to: `localRank` of `localSize`; absent: bound by its
   * starter.
   */
  readonly localRank?: number;
  readonly localSize?: number;
  /** The workers among `localSize`; they come first. */
  readonly localWorkers?: number;
  readonly graceMs: number;
  /** The other side is lost after this much silence. */
  readonly silenceMs: number;
}

export interface Exit {
  readonly pid?: number;
  readonly exitCode: number;
  readonly what: string;
  readonly manner: Manner;
}

/** The JSON of a frame; undefined if it is invalid, which ends the connection. */
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
