// What workers say to servers: a number, what the text is about, and the text; or what the store itself has to say.
import { argumentError } from '../errors.js';
import { assertWellFormed, integer } from '../checks.js';

const mostHead = 2 ** 31 - 1;
/** Where users' commands have a number. */
const profilerHead = 'profiler';
/** As long as a path may be. */
const mostFile = 4096;

/** As it travels. */
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

/** What {@link commandText} was made of. */
export function commandOf(text: string): { readonly head: number; readonly body: string } {
  const [head, body] = partsOf(text);
  return { head: Number(head), body };
}

/** Of setServerProfiler. */
export interface ProfilerCommand {
  /** Null ends what is being written. */
  readonly file: string | null;
  /** Which call of which worker it is of. */
  readonly by: string;
  /** Ends only what this call has begun. */
  readonly undo: boolean;
}

export function profilerText(command: ProfilerCommand): string {
  return `${profilerHead}:${JSON.stringify(command)}`;
}

/** What {@link profilerText} was made of; undefined for another command. */
export function profilerOf(text: string): ProfilerCommand | undefined {
  const [head, body] = partsOf(text);
  if (head !== profilerHead) return undefined;
  const { file, by, undo } = JSON.parse(body) as Partial<ProfilerCommand>;
  const isFile = file === null || (typeof file === 'string' && file.length <= mostFile);
  if (!isFile || typeof by !== 'string' || typeof undo !== 'boolean') {
    throw new Error('a worker sent what setServerProfiler never sends');
  }
  return { file, by, undo };
}

function partsOf(text: string): readonly [head: string, body: string] {
  const end = text.indexOf(':');
  return [text.slice(0, end), text.slice(end + 1)];
}
