// Objects between ranks: settings, names, results. As a structured clone, so that Maps, Dates, typed arrays and cycles arrive
// as they were; functions and class instances do not.
import { deserialize, serialize } from 'node:v8';

import { GradlinkError, argumentError } from '../../errors.js';
import { integer, milliseconds, optionNames, optionsObject } from '../../checks.js';
import { Communicator } from '../communicator.js';
import type { CallOptions } from '../calls/types.js';

/** Options of {@link allGatherObject}. */
export interface ObjectOptions extends CallOptions {
  /**
   * The most bytes that one rank's clone may have, sent or received; 64 MiB when absent. Where ranks differ the smallest
   * counts.
   */
  maxBytes?: number | undefined;
}

/** Options of {@link broadcastObject}. */
export interface BroadcastObjectOptions extends ObjectOptions {
  /** The rank whose object goes to all; 0 when absent. */
  root?: number | undefined;
}

const gatherNames = optionNames<ObjectOptions>({ maxBytes: true, timeoutMs: true });
const broadcastNames = optionNames<BroadcastObjectOptions>({
  maxBytes: true,
  timeoutMs: true,
  root: true,
});

const defaultMaxBytes = 64 * 1024 * 1024;

/** In place of a length: this rank has nothing that can be sent. */
const nothing = -1;

/**
 * Collective: every rank gets the root's object as a structured clone; the root gets its own object back. For settings and
 * the like: arrays of a model belong in `broadcast`.
 *
 * @param value - counts on the root only.
 * @throws on the root TypeError for what cannot be cloned and RangeError for more than `maxBytes`; on the other ranks
 *   GradlinkError ERR_MISMATCH then, at once; on all ranks where one of them takes less than the object has. The
 *   communicator stays usable.
 */
export async function broadcastObject<T>(
  communicator: Communicator,
  value: T,
  options?: BroadcastObjectOptions,
): Promise<T> {
  const op = 'broadcastObject';
  const given = optionsObject(options, broadcastNames, op);
  const { rank, size } = hostRank(communicator);
  const root = integer(given.root ?? 0, 'root', 0, size - 1);
  const { maxBytes, calls } = limits(given);
  const own = rank === root ? cloned(value, maxBytes) : undefined;
  // The smallest of each: the root's length, what every rank takes, and the root from below and above.
  const bytesOfRoot = own === undefined ? Infinity : (own.bytes?.length ?? nothing);
  const told = Float64Array.of(bytesOfRoot, maxBytes, root, -root);
  const [length, most, low, high] = await communicator.allReduce(told, { ...calls, op: 'min' });
  if (own?.error !== undefined) throw own.error;
  if (low !== -high!) {
    const message = `${op}: expected one root on all ranks, got ${low!} to ${-high!}`;
    throw new GradlinkError('ERR_MISMATCH', message, { op, usable: true });
  }
  if (length === nothing) throw unsent(op, root);
  if (!(length! <= most!)) throw tooLong(op, root, length!, most!);
  const bytes = own?.bytes ?? new Uint8Array(length!);
  await communicator.broadcast(bytes, { ...calls, root });
  return rank === root ? value : (deserialize(bytes) as T);
}

/**
 * Collective: every rank gets the objects of all, in the order of ranks, as structured clones.
 *
 * @throws on a rank whose value is at fault TypeError for what cannot be cloned and RangeError for more than `maxBytes`; on
 *   the others GradlinkError ERR_MISMATCH that names it, at once; on all ranks where one of them takes less than an
 *   object has. The communicator stays usable.
 */
export async function allGatherObject<T>(
  communicator: Communicator,
  value: T,
  options?: ObjectOptions,
): Promise<T[]> {
  const op = 'allGatherObject';
  const given = optionsObject(options, gatherNames, op);
  const { rank } = hostRank(communicator);
  const { maxBytes, calls } = limits(given);
  const own = cloned(value, maxBytes);
  const told = await communicator.allGather(
    Float64Array.of(own.bytes?.length ?? nothing, maxBytes),
    calls,
  );
  const lengths = told.filter((_, at) => at % 2 === 0);
  const most = told.reduce(
    (least, limit, at) => (at % 2 === 0 ? least : Math.min(least, limit)),
    Infinity,
  );
  if (own.error !== undefined) throw own.error;
  const faulty = lengths.indexOf(nothing);
  if (faulty >= 0) throw unsent(op, faulty);
  const long = lengths.findIndex((length) => !(length <= most));
  if (long >= 0) throw tooLong(op, long, lengths[long]!, most);
  // All-gather takes blocks of one length.
  const longest = lengths.reduce((most, length) => Math.max(most, length), 0);
  const block = new Uint8Array(longest);
  block.set(own.bytes!);
  const all = await communicator.allGather(block, calls);
  return Array.from(lengths, (length, from) =>
    from === rank
      ? value
      : (deserialize(all.subarray(from * longest, from * longest + length)) as T),
  );
}

/** @throws TypeError for anything but one rank whose arrays are on the host. */
export function hostRank(communicator: unknown): { rank: number; size: number } {
  if (!(communicator instanceof Communicator)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'communicator', 'a Communicator', communicator);
  }
  if (communicator.memory !== 'host') {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      'communicator',
      'one whose arrays are on the host',
      {
        text: 'one whose ranks are GPUs',
      },
    );
  }
  return { rank: communicator.rank, size: communicator.size };
}

function limits({ maxBytes, timeoutMs }: ObjectOptions): { maxBytes: number; calls: CallOptions } {
  milliseconds(timeoutMs, 'timeoutMs', -1);
  return {
    maxBytes: integer(maxBytes ?? defaultMaxBytes, 'maxBytes', 1, 2 ** 31 - 1),
    calls: timeoutMs === undefined ? {} : { timeoutMs },
  };
}

/** The clone's bytes, or why there are none: thrown once the other ranks know. */
function cloned(
  value: unknown,
  maxBytes: number,
): { readonly bytes?: Uint8Array<ArrayBuffer>; readonly error?: Error } {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = Uint8Array.from(serialize(value));
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    const expected = 'a value that can be structured-cloned (no functions, no symbols)';
    return { error: argumentError('ERR_INVALID_ARG_VALUE', 'value', expected, { text }) };
  }
  if (bytes.length <= maxBytes) return { bytes };
  const expected = `at most ${maxBytes} bytes as a structured clone (option maxBytes)`;
  return {
    error: argumentError('ERR_OUT_OF_RANGE', 'value', expected, { text: `${bytes.length}` }),
  };
}

/** Before memory is taken for it. Every rank sees it alike, so none waits for the others. */
function tooLong(op: string, rank: number, bytes: number, most: number): GradlinkError {
  return new GradlinkError(
    'ERR_MISMATCH',
    `${op}: expected at most ${most} bytes, the smallest maxBytes of the ranks, got ${bytes} from rank ${rank}; give all ` +
      'ranks a larger one',
    { op, rank, usable: true },
  );
}

function unsent(op: string, rank: number): GradlinkError {
  return new GradlinkError(
    'ERR_MISMATCH',
    `${op}: rank ${rank} could not send its object: its own error says why`,
    { op, rank, usable: true },
  );
}
