// Validates data and options of send and receive.
import { encodeCall } from '../../native/communicator.js';
import type { NativeBuffer, NativeResult } from '../../native/communicator.js';
import { dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { assertFixedLength } from '../../tensor/memory.js';
import { type Call, callNumber } from './call.js';
import type { Group } from './types.js';
import { messageNames } from './option-names.js';
import { assertPlace } from './place.js';
import { integer, maxInt32, milliseconds, optionsObject, rankOf } from '../../checks.js';

const anySource = -1;

interface RawMessageOptions {
  readonly to?: unknown;
  readonly from?: unknown;
  readonly tag?: unknown;
  readonly dtype?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

export function prepareSend(
  group: Group,
  data: unknown,
  options: RawMessageOptions | undefined,
  blocking: boolean,
): Call {
  const given = checked('send', options, blocking);
  return prepareMessage(group, 'send', data, given, rankOf(given.to, 'to', group.size));
}

export function prepareReceive(
  group: Group,
  data: unknown,
  options: RawMessageOptions | undefined,
  blocking: boolean,
): Call {
  const given = checked('receive', options, blocking);
  const source = given.from === undefined ? anySource : rankOf(given.from, 'from', group.size);
  return prepareMessage(group, 'receive', data, given, source);
}

function checked(
  op: keyof typeof messageNames,
  options: RawMessageOptions | undefined,
  blocking: boolean,
): RawMessageOptions {
  const names = messageNames[op];
  return optionsObject(options, blocking ? names.blocking : names.awaited, op);
}

function prepareMessage(
  group: Group,
  kind: 'send' | 'receive',
  data: unknown,
  options: RawMessageOptions,
  peer: number,
): Call {
  const dtype = dtypeNumber(data, options.dtype, 'data');
  const array = data as AnyArray;
  assertPlace(group, 0, array, 'data');
  assertFixedLength(array, 'data');
  const tag = options.tag === undefined ? 0 : integer(options.tag, 'tag', 0, maxInt32);
  const timeoutMs = milliseconds(options.timeoutMs, 'timeoutMs', -1);
  return messageOf(kind, kind, dtype, storageOf(array), peer, tag, timeoutMs);
}

const received = (got: NativeResult): unknown => got;

/** @param op - for errors and timelines */
export function messageOf(
  op: string,
  kind: 'send' | 'receive',
  dtype: number,
  data: NativeBuffer,
  peer: number,
  tag: number,
  timeoutMs: number,
): Call {
  const sends = kind === 'send';
  return {
    op,
    name: undefined,
    code: encodeCall(sends ? callNumber.send : callNumber.receive, dtype, 0),
    input: sends ? data : null,
    output: sends ? null : data,
    count: tag,
    root: peer,
    timeoutMs,
    more: undefined,
    bytes: Infinity,
    result: undefined,
    finish: sends ? undefined : received,
  };
}
