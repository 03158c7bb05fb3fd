// Escapes characters of foreign text that a terminal interprets or XML forbids.

/** Control characters, line ends, bidirectional controls, surrogates and the two noncharacters of the first plane. */
const acting = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/gu;
/** The same without newline and tab. */
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

/** A text in one line, with these characters as JSON escapes. */
export function printable(text: string): string {
  return text.replaceAll(acting, escape);
}

/** A text of several lines, such as an error that lists attempts: keeps newlines and tabs. */
export function printableLines(text: string): string {
  return text.replaceAll(actingInLines, escape);
}

/** Far above any report or plan: deeper or cyclic values would overflow the stack. */
const mostLevels = 64;

/**
 * A copy of a value with all strings and member names printable.
 *
 * @param tooDeep makes the error for more than 64 levels
 */
export function printableTree(value: unknown, tooDeep: () => Error, level = 0): unknown {
  if (typeof value === 'string') return printable(value);
  if (typeof value !== 'object' || value === null) return value;
  if (level === mostLevels) throw tooDeep();
  const below = (member: unknown): unknown => printableTree(member, tooDeep, level + 1);
  if (Array.isArray(value)) return value.map(below);
  // fromEntries, because a member may be called __proto__.
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [printable(name), below(member)]),
  );
}
