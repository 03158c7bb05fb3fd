// A validated call of a communicator, ready for native code.
import { nativeCalls, type NativeCallName } from '../../collectives.js';
import { encodeCall } from '../../native/communicator.js';
import type { NativeBuffers, NativeMore, NativeResult } from '../../native/communicator.js';

/** Fields for native code: see {@link NativeCommunicator.run}. */
export interface Call {
  /** For errors and timelines. */
  readonly op: string;
  /** The caller's name for it. */
  readonly name: string | undefined;
  /** See encodeCall. */
  readonly code: number;
  readonly input: NativeBuffers;
  readonly output: NativeBuffers;
  readonly count: number;
  readonly root: number;
  /** -1 is the communicator's default. */
  readonly timeoutMs: number;
  readonly more: NativeMore | undefined;
  /** Bytes per rank of a collective; Infinity for other calls. */
  readonly bytes: number;
  /** The caller's result, unless it is made from native code's. */
  readonly result: unknown;
  readonly finish: ((got: NativeResult) => unknown) | undefined;
}

/** The numbers of calls. */
export const callNumber = Object.fromEntries(
  nativeCalls.map((name, number) => [name, number]),
) as Readonly<Record<NativeCallName, number>>;

type Needed = Pick<Call, 'input' | 'output' | 'timeoutMs'>;

/** A call with more than arrays of one length. */
export function callOf(
  kind: NativeCallName,
  dtype: number,
  given: Needed & Partial<Omit<Call, 'code'>>,
  reduceOp = 0,
): Call {
  return {
    op: kind,
    name: undefined,
    code: encodeCall(callNumber[kind], dtype, reduceOp),
    count: 0,
    root: 0,
    more: undefined,
    bytes: Infinity,
    result: undefined,
    finish: undefined,
    ...given,
  };
}

export const dtypeOf = ({ code }: Call): number => (code >> 8) & 0xff;
