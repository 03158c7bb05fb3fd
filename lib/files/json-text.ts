// JSON that somebody wrote or tore: its value, or where it stops being JSON.

/** One token, with the space before it. Strings are taken run by run: long ones must not fill the engine's stack. */
const token =
  /[ \t\n\r]*(?:[{}[\],:]|"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const space = /[ \t\n\r]*/y;

/** What may come next. */
type Wanted = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or end' | 'nothing more';

/** Reads one token in the place of `wanted`; what may follow it, or undefined where it may not stand there. */
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

/** Where a text that is no JSON stops being JSON: its length where it only ends too early. */
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
 * The value of a JSON text.
 *
 * @param wrong makes the error of a text that is no JSON, from words that say where it stops being one
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

/** What kind of JSON a value is, in words. */
export function jsonKind(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
