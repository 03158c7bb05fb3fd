// Texts that others wrote, made harmless: a terminal acts on some characters, and XML may not have them.

/**
 * Control characters, line ends, what turns the direction of reading, and what is no character at all: halves of
 * pairs and the two last of the first plane.
 */
const acting = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/gu;
/** The same without what a text of several lines is made of. */
const actingInLines = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/gu;

const short: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

function escape(character: string): string {
  const code = character.charCodeAt(0).toString(16).padStart(4, '0');
  return short.get(character) ?? `\\u${code}`;
}

/** A text in one line, each of these characters as the escape that JSON has for it. */
export function printable(text: string): string {
  return text.replaceAll(acting, escape);
}

/** A text of several lines, such as an error that lists what was tried: its line breaks and tabs stay. */
export function printableLines(text: string): string {
  return text.replaceAll(actingInLines, escape);
}

/** No report or plan comes near; what is deeper would fill the engine's stack, and what holds itself is endless. */
const mostLevels = 64;

/**
 * A value that was read, each text in it printable, names of members too.
 *
 * @param tooDeep makes the error of a value of more than 64 levels
 */
export function printableTree(value: unknown, tooDeep: () => Error, level = 0): unknown {
  if (typeof value === 'string') return printable(value);
  if (typeof value !== 'object' || value === null) return value;
  if (level === mostLevels) throw tooDeep();
  const below = (member: unknown): unknown => printableTree(member, tooDeep, level + 1);
  if (Array.isArray(value)) return value.map(below);
  // fromEntries, for a member may be called __proto__.
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [printable(name), below(member)]),
  );
}
