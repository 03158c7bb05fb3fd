// Spreads one failure to all ranks: an operation over nodes runs on several communicators. Ranks waiting in another one
// are ended by aborting it; the reason carries the failure.
import { GradlinkError } from '../../errors.js';
import type { ErrorCode } from '../../errors.js';

const op = 'hierarchicalNeighborAllReduce';
const again = 'await setMachineTopology() on all ranks to go on';

/** What ended the nodes. */
export interface NodesFailure {
  readonly code: ErrorCode;
  /** The rank that saw it first. */
  readonly rank: number;
  readonly text: string;
  /** Whether the parent communicator can be used. */
  readonly usable: boolean;
}

/** @param rank - this rank, which saw the error unless it came from another */
export function nodesFailure(error: unknown, rank: number): NodesFailure {
  const { code, text, by } = parsed(error) ?? own(error, rank);
  return { code, text, rank: by, usable: code === 'ERR_MISMATCH' };
}

/** The abort reason of the nodes' communicators. */
export function reasonOf({ code, rank, text }: NodesFailure): string {
  return `${op} failed on rank ${rank} with ${code}: ${text}`;
}

/** The same error for every rank. */
export function errorOf({ code, rank, text, usable }: NodesFailure, cause: unknown): GradlinkError {
  const message = `${op}: rank ${rank}: ${text}${usable ? `; ${again}` : ''}`;
  return new GradlinkError(code, message, { op, rank, usable, cause });
}

/** The error of a call after the failure. */
export function nodesEnded({ text, usable }: NodesFailure): GradlinkError {
  const message = `${op}: the nodes ended with an earlier failure (${text})${usable ? `; ${again}` : ''}`;
  return new GradlinkError('ERR_UNSUPPORTED', message, { op, usable });
}

/** The error of a call before there are nodes. */
export function noNodes(): GradlinkError {
  const message = `${op}: no nodes yet: await setMachineTopology() on all ranks first`;
  return new GradlinkError('ERR_UNSUPPORTED', message, { op, usable: true });
}

/** The error if ranks formed nodes of different sizes; `count` of `size` ranks agree with this one. */
export function sizesDiffer(count: number, size: number, perNode: number): GradlinkError {
  const forming = 'setMachineTopology';
  const message = `${forming}: ranks differ in ranksPerNode: only ${count} of the ${size} ranks have ${perNode}, as this one has. All ranks must say the same`;
  return new GradlinkError('ERR_MISMATCH', message, { op: forming, usable: true });
}

interface Seen {
  readonly code: ErrorCode;
  readonly text: string;
  readonly by: number;
}

function parsed(error: unknown): Seen | undefined {
  if (!(error instanceof GradlinkError) || error.code !== 'ERR_ABORTED') return undefined;
  const form = new RegExp(`${op} failed on rank (\\d+) with (ERR_[A-Z_]+): ([^]*)$`);
  const [, by, code, text] = form.exec(error.message) ?? [];
  if (by === undefined) return undefined;
  return { by: Number(by), code: code as ErrorCode, text: text! };
}

function own(error: unknown, rank: number): Seen {
  const text = error instanceof Error ? error.message : String(error);
  return { by: rank, code: error instanceof GradlinkError ? error.code : 'ERR_ABORTED', text };
}
