// The header that ranks exchange before a call of several steps: its name and arguments, or an error. All ranks then
// see a mismatch or one rank's misuse before data moves.
import { GradlinkError } from '../../errors.js';
import { native } from '../../native/load.js';
import type { Communicator } from '../communicator.js';
import { hashOf } from '../hash.js';
import type { CallOptions } from '../calls/types.js';

/** One short message of the engine. */
const headerBytes = 256;
const countAt = 0;
const mostAt = 8;
const hashAt = 16;
const refusedAt = 20;
const textAt = 24;

/** One rank's header of a call. */
export interface Said {
  readonly op: string;
  /** The caller's name for the call, or empty. */
  readonly name: string;
  /** Must be equal on all ranks. */
  readonly brings: string;
  /** May differ: every rank gets all of them. */
  readonly count: number;
  /** This rank's maximum; every rank gets the smallest. Unlimited when absent. */
  readonly most?: number;
}

/** The combined headers of all ranks. */
export interface Agreed {
  /** Of each rank; 0 for ranks that have joined. */
  readonly counts: number[];
  readonly most: number;
}

const textOf = ({ op, name, brings }: Said): string =>
  `${op}${name === '' ? '' : ` '${name}'`} of ${brings}`;

/**
 * Collective: begins a call of several steps on all ranks or on none.
 *
 * @param options - of the call, not validated: a valid deadline is used.
 * @param prepare - validates this rank's arguments and returns its header. If it throws, the other ranks get the reason
 *   first.
 * @throws GradlinkError ERR_MISMATCH on every rank if headers differ or one rank cannot take part; the communicator
 *   stays usable.
 */
export async function beginTogether<T>(
  communicator: Communicator,
  op: string,
  options: unknown,
  prepare: () => readonly [Said, T] | Promise<readonly [Said, T]>,
): Promise<readonly [T, Agreed]> {
  const calls = deadlineOf(options);
  let ready: readonly [Said, T];
  try {
    const made = prepare();
    // Without anything to await, the call keeps its position in the order of calls.
    ready = made instanceof Promise ? await made : made;
  } catch (cause) {
    await refuse(communicator, cause, calls);
    throw cause;
  }
  const [said, own] = ready;
  return [own, await agree(communicator, op, said, calls)];
}

/** Collective, in place of {@link beginTogether}: sends the other ranks the reason why this rank cannot take part. */
export async function refuse(
  communicator: Communicator,
  cause: unknown,
  calls: CallOptions,
): Promise<void> {
  const text = cause instanceof Error ? cause.message : String(cause);
  const header = headerOf(0, -Infinity, text);
  new DataView(header.buffer).setInt32(refusedAt, 1);
  // If they cannot be reached, this rank still has its own error.
  await headersOf(communicator, header, calls).catch(() => undefined);
}

/**
 * The rest of a call that all ranks have begun. If it fails on this rank alone, aborts the communicator, because the
 * others are waiting in it.
 */
export async function goOn<T>(
  communicator: Communicator,
  op: string,
  rest: () => Promise<T>,
): Promise<T> {
  try {
    return await rest();
  } catch (cause) {
    failForAll(communicator, op, cause);
    throw cause;
  }
}

/**
 * Aborts the communicator because `what` failed on this rank alone. Errors of collectives reach all ranks by
 * themselves.
 */
export function failForAll(communicator: Communicator, what: string, cause: unknown): void {
  if (cause instanceof GradlinkError || communicator.size === 1) return;
  communicator.abort(`${what} of rank ${communicator.rank} failed: ${String(cause)}`);
}

async function agree(
  communicator: Communicator,
  op: string,
  said: Said,
  calls: CallOptions,
): Promise<Agreed> {
  const header = headerOf(said.count, said.most ?? Infinity, textOf(said));
  const headers = await headersOf(communicator, header, calls);
  const entries = [...headers].map(([rank, one]) => ({ rank, view: viewOf(one), one }));
  const refused = entries.find(({ view }) => view.getInt32(refusedAt) !== 0);
  if (refused !== undefined) {
    const { rank, one } = refused;
    const message = `${op}: rank ${rank} could not take part: ${shown(one)}`;
    throw new GradlinkError('ERR_MISMATCH', message, { op, rank, usable: true });
  }
  if (entries.some(({ view }) => view.getUint32(hashAt) !== entries[0]!.view.getUint32(hashAt))) {
    const calls = entries.map(({ rank, view, one }) => {
      return { rank, record: view.getUint32(hashAt), call: shown(one) };
    });
    native().checkCalls(op, calls);
  }
  const counts = Array.from({ length: communicator.size }, (_, rank) => {
    const one = headers.get(rank);
    return one === undefined ? 0 : viewOf(one).getFloat64(countAt);
  });
  return { counts, most: Math.min(...entries.map(({ view }) => view.getFloat64(mostAt))) };
}

function headerOf(count: number, most: number, text: string): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(headerBytes);
  const view = new DataView(header.buffer);
  view.setFloat64(countAt, count);
  view.setFloat64(mostAt, most);
  view.setInt32(hashAt, hashOf(text));
  new TextEncoder().encodeInto(text, header.subarray(textAt));
  return header;
}

function deadlineOf(options: unknown): CallOptions {
  const { timeoutMs } = (options ?? {}) as { readonly timeoutMs?: unknown };
  return typeof timeoutMs === 'number' && timeoutMs > 0 ? { timeoutMs } : {};
}

const viewOf = (bytes: Uint8Array) =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** The header of each rank that has not joined. */
async function headersOf(
  communicator: Communicator,
  header: Uint8Array,
  calls: CallOptions,
): Promise<ReadonlyMap<number, Uint8Array>> {
  const { data, counts } = communicator.joinable
    ? await communicator.allGatherV(header, calls)
    : { data: await communicator.allGather(header, calls), counts: undefined };
  const ranks = Array.from({ length: communicator.size }, (_, rank) => rank);
  const active = ranks.filter((rank) => counts === undefined || counts[rank]! > 0);
  return new Map(
    active.map((rank, i) => [rank, data.subarray(i * headerBytes, (i + 1) * headerBytes)]),
  );
}

function shown(header: Uint8Array): string {
  const bytes = header.subarray(textAt);
  const [text = ''] = new TextDecoder().decode(bytes).split('\0', 1);
  // The last character may be cut.
  return bytes.at(-1) === 0 ? text : `${text.replace(/�{1,3}$/, '')}…`;
}
