// What ranks tell each other before a call of several parts: its name and what it brings, or why they cannot make it. So a
// mismatch, and what one rank alone was given wrong, is seen by all before anything moves.
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

/** What ranks that are asked to agree say of their call. */
export interface Said {
  readonly op: string;
  /** As the caller named the call; empty where it did not. */
  readonly name: string;
  /** What must be equal on all ranks. */
  readonly brings: string;
  /** What may differ: every rank gets everybody's. */
  readonly count: number;
  /** The most that this rank takes; every rank gets the smallest. No bound when absent. */
  readonly most?: number;
}

/** What all ranks have said. */
export interface Agreed {
  /** Everybody's; 0 of ranks that have joined. */
  readonly counts: number[];
  readonly most: number;
}

const textOf = ({ op, name, brings }: Said): string =>
  `${op}${name === '' ? '' : ` '${name}'`} of ${brings}`;

/**
 * Collective: begins a call of several parts on all ranks, or on none.
 *
 * @param options - of the call, unchecked as they came: their deadline counts where it is one.
 * @param prepare - checks what this rank was given, and says what it brings. Where it throws, the others are told why, and
 *   this rank's own error follows once they know.
 * @throws GradlinkError ERR_MISMATCH, on every rank, where they say different things or one of them cannot take part; the
 *   communicator stays usable.
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
    // The call keeps its place in the order of calls where there is nothing to wait for.
    ready = made instanceof Promise ? await made : made;
  } catch (cause) {
    await refuse(communicator, cause, calls);
    throw cause;
  }
  const [said, own] = ready;
  return [own, await agree(communicator, op, said, calls)];
}

/** Collective, in place of {@link beginTogether}: tells the others why this rank cannot make the call. Resolves when they know. */
export async function refuse(
  communicator: Communicator,
  cause: unknown,
  calls: CallOptions,
): Promise<void> {
  const text = cause instanceof Error ? cause.message : String(cause);
  const header = headerOf(0, -Infinity, text);
  new DataView(header.buffer).setInt32(refusedAt, 1);
  // Where they cannot be told, this rank has its own error all the same.
  await headersOf(communicator, header, calls).catch(() => undefined);
}

/**
 * The rest of a call that all ranks have begun. Where it fails on this rank alone, the others wait in the midst of it: they
 * are told by aborting the communicator.
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
 * Tells the others, who wait or will, that `what` failed on this rank and cannot be made up for: aborts the communicator.
 * What collectives throw, all ranks know of.
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
  const told = [...headers].map(([rank, one]) => ({ rank, view: viewOf(one), one }));
  const refused = told.find(({ view }) => view.getInt32(refusedAt) !== 0);
  if (refused !== undefined) {
    const { rank, one } = refused;
    const message = `${op}: rank ${rank} could not take part: ${shown(one)}`;
    throw new GradlinkError('ERR_MISMATCH', message, { op, rank, usable: true });
  }
  if (told.some(({ view }) => view.getUint32(hashAt) !== told[0]!.view.getUint32(hashAt))) {
    const calls = told.map(({ rank, view, one }) => {
      return { rank, record: view.getUint32(hashAt), call: shown(one) };
    });
    native().checkCalls(op, calls);
  }
  const counts = Array.from({ length: communicator.size }, (_, rank) => {
    const one = headers.get(rank);
    return one === undefined ? 0 : viewOf(one).getFloat64(countAt);
  });
  return { counts, most: Math.min(...told.map(({ view }) => view.getFloat64(mostAt))) };
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
  const told = ranks.filter((rank) => counts === undefined || counts[rank]! > 0);
  return new Map(
    told.map((rank, i) => [rank, data.subarray(i * headerBytes, (i + 1) * headerBytes)]),
  );
}

function shown(header: Uint8Array): string {
  const bytes = header.subarray(textAt);
  const [text = ''] = new TextDecoder().decode(bytes).split('\0', 1);
  // The last letter may be cut as well.
  return bytes.at(-1) === 0 ? text : `${text.replace(/�{1,3}$/, '')}…`;
}
