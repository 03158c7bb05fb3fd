// From a caller's data and options to what native send and receive take.
import { dtypeNumber, storageOf } from '../tensor/dtype.js';
import type { NumericArray, StorageArray } from '../tensor/dtype.js';
import { assertFixedLength } from '../tensor/memory.js';
import type { Group } from './group.js';
import { integer, maxInt32, milliseconds, optionsObject, rankOf } from './validate.js';

/** What native code calls "any source". */
const anySource = -1;

/** One message, ready to go or come. */
export interface MessageCall {
  readonly dtype: number;
  readonly data: StorageArray;
  /** The other rank. */
  readonly peer: number;
  readonly tag: number;
  readonly timeoutMs: number;
}

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
): MessageCall {
  const given = optionsObject(options);
  return prepareMessage(data, given, rankOf(given.to, 'to', group.size));
}

export function prepareReceive(
  group: Group,
  data: unknown,
  options: RawMessageOptions | undefined,
): MessageCall {
  const given = optionsObject(options);
  const source = given.from === undefined ? anySource : rankOf(given.from, 'from', group.size);
  return prepareMessage(data, given, source);
}

function prepareMessage(data: unknown, options: RawMessageOptions, peer: number): MessageCall {
  const dtype = dtypeNumber(data, options.dtype, 'data');
  const array = data as NumericArray;
  assertFixedLength(array, 'data');
  return {
    dtype,
    data: storageOf(array),
    peer,
    tag: options.tag === undefined ? 0 : integer(options.tag, 'tag', 0, maxInt32),
    timeoutMs: milliseconds(options.timeoutMs, 'timeoutMs', -1),
  };
}
