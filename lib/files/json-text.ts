// Parses JSON, and locates the error in invalid text.

/** A token with the space before it. Strings match in runs, because long ones must not overflow the engine's stack. */
const token =
  /[ \t\n\r]*(?:[{}[\],:]|"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const space = /[ \t\n\r]*/y;

/** The possible next tokens. */
type Wanted = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or end' | 'nothing more';

/** Reads one token in place of `wanted`; returns what may follow, or undefined if it is invalid here. */
function after(text: string, wanted: Wanted, open: string[]): Wanted | undefined {
  const closed = (): Wanted => {
    open.pop();
    return open.length === 0 ? 'nothing more' : ', or end';
  };
  const isName = text.startsWith('"');
  if (wanted === ', or end') {
    if (text === ',') return open.at(-1) === '{' ? 'name' : 'value';
    return text === (open.at(-1) === '{' ? '}' : ']') ? closed() : undefined;
  }
  if (wanted === ':') return text === ':' ? 'value' : undefined;
  if (wanted === 'name or }' && text === '}') return closed();
  if (wanted === 'name' || wanted === 'name or }') return isName ? ':' : undefined;
  if (wanted === 'value or ]' && text === ']') return closed();
  if (wanted === 'nothing more' || /^[\]},:]/.test(text)) return undefined;
  if (text === '{' || text === '[') {
    open.push(text);
    return text === '{' ? 'name or }' : 'value or ]';
  }
  return open.length === 0 ? 'nothing more' : ', or end';
}

/** The position of the first error in invalid JSON: its length if it only ends early. */
function faultOf(text: string): number {
  const open: string[] = [];
  let wanted: Wanted = 'value';
  for (let at = 0; ; at = token.lastIndex) {
    space.lastIndex = at;
    space.exec(text);
    const start = space.lastIndex;
    if (start === text.length) return start;
    token.lastIndex = start;
    const found: string | undefined = token.exec(text)?.[0].trim();
    const next: Wanted | undefined = found === undefined ? undefined : after(found, wanted, open);
    if (next === undefined) return start;
    wanted = next;
  }
}

/** `line 3, column 7`, both from 1; columns are characters. */
function placeOf(text: string, at: number): string {
  const lines = text.slice(0, at).split('\n');
  return `line ${String(lines.length)}, column ${String((lines.at(-1) ?? '').length + 1)}`;
}

/**
 * Parses JSON.
 *
 * @param wrong makes the error from a description of the position
 */
export function parseJson(text: string, wrong: (why: string) => Error): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const at = faultOf(text);
    const ends = at === text.length;
    throw wrong(
      `invalid JSON (${ends ? 'it ends too early, ' : 'wrong from '}${placeOf(text, at)})`,
    );
  }
}

/** The kind of a JSON value in words. */
export function jsonKind(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
