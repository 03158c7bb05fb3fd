// Sends objects between ranks: settings, names, results. They are structured clones, so Maps, Dates, typed arrays and
// cycles survive; functions and class instances do not.
import { deserialize, serialize } from 'node:v8';

import { GradlinkError, argumentError } from '../../errors.js';
import { integer, milliseconds, optionNames, optionsObject } from '../../checks.js';
import { Communicator } from '../communicator.js';
import type { CallOptions } from '../calls/types.js';
import { beginTogether, goOn, type Said } from './agreement.js';

/** Options of {@link allGatherObject}. */
export interface ObjectOptions extends CallOptions {
  /** Maximum bytes of one rank's clone, sent or received; 64 MiB when absent. If ranks differ, the smallest counts. */
  maxBytes?: number | undefined;
}

/** Options of {@link broadcastObject}. */
export interface BroadcastObjectOptions extends ObjectOptions {
  /** The rank whose object is sent; 0 when absent. */
  root?: number | undefined;
}

const gatherNames = optionNames<ObjectOptions>({ maxBytes: true, timeoutMs: true });
const broadcastNames = optionNames<BroadcastObjectOptions>({
  maxBytes: true,
  timeoutMs: true,
  root: true,
});

const defaultMaxBytes = 64 * 1024 * 1024;

/**
 * Collective: every rank gets the root's object as a structured clone; the root gets its own object back. For settings
 * and the like: send a model's arrays with `broadcast`.
 *
 * @param value - used on the root only.
 * @throws on the root TypeError if it cannot be cloned and RangeError beyond `maxBytes`; the others get GradlinkError
 *   ERR_MISMATCH with that error's text. All ranks get it if the object exceeds one rank's `maxBytes`. The communicator
 *   stays usable.
 */
export async function broadcastObject<T>(
  communicator: Communicator,
  value: T,
  options?: BroadcastObjectOptions,
): Promise<T> {
  const op = 'broadcastObject';
  const { rank, size } = hostRank(communicator);
  const [own, { counts, most }] = await beginTogether(communicator, op, options, () => {
    const given = optionsObject(options, broadcastNames, op);
    const root = integer(given.root ?? 0, 'root', 0, size - 1);
    const { maxBytes, calls } = limits(given);
    const bytes = rank === root ? cloned(value, maxBytes) : undefined;
    const brings = `an object of root ${root}`;
    const said: Said = { op, name: '', brings, count: bytes?.length ?? 0, most: maxBytes };
    return [said, { root, bytes, calls }] as const;
  });
  const { root, calls } = own;
  const length = counts[root]!;
  if (length > most) throw tooLong(op, root, length, most);
  return await goOn(communicator, op, async () => {
    const bytes = own.bytes ?? new Uint8Array(length);
    await communicator.broadcast(bytes, { ...calls, root });
    return rank === root ? value : (read(op, bytes, root) as T);
  });
}

/**
 * Collective: every rank gets the objects of all in rank order, as structured clones.
 *
 * @throws on a rank with an invalid value TypeError if it cannot be cloned and RangeError beyond `maxBytes`; the others
 *   get GradlinkError ERR_MISMATCH with that rank and its error's text. All ranks get it if an object exceeds one
 *   rank's `maxBytes`. The communicator stays usable.
 */
export async function allGatherObject<T>(
  communicator: Communicator,
  value: T,
  options?: ObjectOptions,
): Promise<T[]> {
  const op = 'allGatherObject';
  const { rank } = hostRank(communicator);
  const [{ bytes, calls }, agreed] = await beginTogether(communicator, op, options, () => {
    const { maxBytes, calls } = limits(optionsObject(options, gatherNames, op));
    const bytes = cloned(value, maxBytes);
    const said: Said = { op, name: '', brings: 'objects', count: bytes.length, most: maxBytes };
    return [said, { bytes, calls }] as const;
  });
  const { counts: lengths, most } = agreed;
  const long = lengths.findIndex((length) => length > most);
  if (long >= 0) throw tooLong(op, long, lengths[long]!, most);
  return await goOn(communicator, op, async () => {
    // All-gather takes blocks of equal length.
    const longest = lengths.reduce((most, length) => Math.max(most, length), 0);
    const block = new Uint8Array(longest);
    block.set(bytes);
    const all = await communicator.allGather(block, calls);
    return lengths.map((length, from) => {
      if (from === rank) return value;
      return read(op, all.subarray(from * longest, from * longest + length), from) as T;
    });
  });
}

/** @throws TypeError unless it is one rank in host memory. */
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

/**
 * The clone's bytes.
 *
 * @throws TypeError if it cannot be cloned, RangeError beyond `maxBytes`.
 */
function cloned(value: unknown, maxBytes: number): Uint8Array<ArrayBuffer> {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = Uint8Array.from(serialize(value));
    // Some values can be written but not read, such as a WebAssembly.Module; other ranks could not report it.
    deserialize(bytes);
  } catch (cause) {
    const expected = 'a value that can be structured-cloned (no functions, no symbols)';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'value', expected, { text: lineOf(cause) });
  }
  if (bytes.length <= maxBytes) return bytes;
  const expected = `at most ${maxBytes} bytes as a structured clone (option maxBytes)`;
  throw argumentError('ERR_OUT_OF_RANGE', 'value', expected, { text: `${bytes.length}` });
}

/** Node prints some objects with all their members over many lines. */
function lineOf(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  const line = text.replace(/\s+/g, ' ');
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}

/** Reads a clone written by another rank's Node. */
function read(op: string, bytes: Uint8Array, rank: number): unknown {
  try {
    return deserialize(bytes);
  } catch (cause) {
    const message =
      `${op}: the object of rank ${rank} cannot be read here: ${lineOf(cause)}; give all ranks one release of Node, and an ` +
      'object that fits into memory';
    throw new GradlinkError('ERR_MISMATCH', message, { op, rank, usable: true, cause });
  }
}

/** Checked before allocating. Every rank sees it alike, so none waits for the others. */
function tooLong(op: string, rank: number, bytes: number, most: number): GradlinkError {
  return new GradlinkError(
    'ERR_MISMATCH',
    `${op}: expected at most ${most} bytes, the smallest maxBytes of the ranks, got ${bytes} from rank ${rank}; give all ` +
      'ranks a larger one',
    { op, rank, usable: true },
  );
}
