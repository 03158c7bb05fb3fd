// Commands from workers to servers: a number and a text from the user, or a message of the store itself.
import { argumentError } from '../errors.js';
import { assertWellFormed, integer } from '../checks.js';

const mostHead = 2 ** 31 - 1;
/** In place of the number of users' commands. */
const profilerHead = 'profiler';
/** The maximum length of a path. */
const mostFile = 4096;

/** The wire format. */
export function commandText(head: unknown, body: unknown): string {
  if (typeof head === 'string' && body === undefined) return commandText(0, head);
  if (typeof head !== 'number') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'head', 'an integer, or a single string', head);
  }
  if (typeof body !== 'string') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'body', 'a text', body);
  }
  assertWellFormed(body, 'body');
  return `${String(integer(head, 'head', 0, mostHead))}:${body}`;
}

/** The reverse of {@link commandText}. */
export function commandOf(text: string): { readonly head: number; readonly body: string } {
  const [head, body] = partsOf(text);
  return { head: Number(head), body };
}

/** The argument of setServerProfiler. */
export interface ProfilerCommand {
  /** Null ends profiling. */
  readonly file: string | null;
  /** The calling worker and its call. */
  readonly by: string;
  /** Ends only what this call has started. */
  readonly undo: boolean;
}

export function profilerText(command: ProfilerCommand): string {
  return `${profilerHead}:${JSON.stringify(command)}`;
}

/** The reverse of {@link profilerText}; undefined for other commands. */
export function profilerOf(text: string): ProfilerCommand | undefined {
  const [head, body] = partsOf(text);
  if (head !== profilerHead) return undefined;
  const { file, by, undo } = JSON.parse(body) as Partial<ProfilerCommand>;
  const isFile = file === null || (typeof file === 'string' && file.length <= mostFile);
  if (!isFile || typeof by !== 'string' || typeof undo !== 'boolean') {
    throw new Error('a worker sent an invalid setServerProfiler command');
  }
  return { file, by, undo };
}

function partsOf(text: string): readonly [head: string, body: string] {
  const end = text.indexOf(':');
  return [text.slice(0, end), text.slice(end + 1)];
}
