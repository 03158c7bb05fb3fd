// From a caller's data and options to what native send and receive take.
import type { NativeBuffer } from '../../native/communicator.js';
import { dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { assertFixedLength } from '../../tensor/memory.js';
import { type Call, callOf } from './call.js';
import type { Group } from './types.js';
import { messageNames } from './option-names.js';
import { assertPlace } from './place.js';
import { integer, maxInt32, milliseconds, optionsObject, rankOf } from '../../checks.js';

/** What native code calls "any source". */
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
  return messageOf(kind, dtype, storageOf(array), peer, {
    count: options.tag === undefined ? 0 : integer(options.tag, 'tag', 0, maxInt32),
    timeoutMs: milliseconds(options.timeoutMs, 'timeoutMs', -1),
  });
}

/** @param given - the tag as `count`, the time, and what else is to be told. */
export function messageOf(
  kind: 'send' | 'receive',
  dtype: number,
  data: NativeBuffer,
  peer: number,
  given: Pick<Call, 'count' | 'timeoutMs'> & { readonly op?: string },
): Call {
  const sends = kind === 'send';
  return callOf(kind, dtype, {
    input: sends ? data : null,
    output: sends ? null : data,
    root: peer,
    finish: (got) => got,
    ...given,
  });
}
