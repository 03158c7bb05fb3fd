// What workers say to servers: a number, what the text is about, and the text.
import { argumentError } from '../errors.js';
import { integer } from '../validate.js';

const mostHead = 2 ** 31 - 1;

/** As it travels. */
export function commandText(head: unknown, body: unknown): string {
  if (typeof head === 'string' && body === undefined) return commandText(0, head);
  if (typeof head !== 'number') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'head', 'an integer, or a text alone', head);
  }
  if (typeof body !== 'string') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'body', 'a text', body);
  }
  return `${String(integer(head, 'head', 0, mostHead))}:${body}`;
}

/** What {@link commandText} was made of. */
export function commandOf(text: string): { readonly head: number; readonly body: string } {
  const end = text.indexOf(':');
  return { head: Number(text.slice(0, end)), body: text.slice(end + 1) };
}
