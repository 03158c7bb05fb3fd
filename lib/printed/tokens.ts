// Splits a line into numbers, words and marks, for all readers of free text.

/** A number with its suffix, a word, or a mark. */
export type Token =
  | { readonly kind: 'number'; readonly value: number; readonly text: string }
  /** In lower case; `exact` keeps the case for units. */
  | {
      readonly kind: 'word';
      readonly text: string;
      readonly exact: string;
      readonly glued: boolean;
    }
  /** Anything else: one character, `+-` for any tolerance, `nan`. */
  | { readonly kind: 'mark'; readonly text: string };

const scales: Readonly<Record<string, number>> = { '': 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9 };

const digits = String.raw`(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d*)?|\.\d+`;
const numberText = new RegExp(String.raw`^[+-]?(?:${digits})(?:[eE][+-]?\d{1,3})?$`);
// Including `1.2k`, but not `1.2kB` or `1.2 k`.
const numberHere = new RegExp(
  String.raw`([+-]?(?:${digits})(?:[eE][+-]?\d{1,3})?)([kKMG](?![\w/]))?`,
  'y',
);
/** Followed by this it is not a number: a date, a time, a version, an address, `1,5`. */
const goesOn = /[.,:]\d|-\d|_/y;
const blob = /[\w.,:+/-]*/y;
const wordHere = /[A-Za-zµμ][\dA-Za-zµμ]*/y;
const tolerance = /\+\/-|\+-|±/y;
/** In place of a number, so not a word of a label: `loss: nan 12.3k tokens/s`. */
const noNumber = /(?:nan|inf(?:inity)?|n\/a|none|null)(?![\w/-])/iy;

/** The number of a cell: `1,234.5`, `1e-06`, `.5`; undefined for others, including `N/A` and `nan`. */
export function numberOf(text: string): number | undefined {
  return numberText.test(text) ? Number(text.replaceAll(',', '')) : undefined;
}

function matchAt(expression: RegExp, line: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(line);
}

/** `RunningAvgSamplesPerSec` is five words; `GiB` is one. */
function words(text: string): string[] {
  return text.length < 6 ? [text] : text.split(/(?<=[a-z])(?=[A-Z])/);
}

export function tokensOf(line: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < line.length) {
    const letter = line.charAt(at);
    const before = line.charAt(at - 1);
    if (/\s/.test(letter)) {
      at += 1;
      continue;
    }
    const pm = matchAt(tolerance, line, at);
    if (pm !== null) {
      tokens.push({ kind: 'mark', text: '+-' });
      at += pm[0].length;
      continue;
    }
    // A sign between two words or numbers is a dash.
    const signed = (letter === '+' || letter === '-') && /[\w)\]]/.test(before);
    const found = signed ? null : matchAt(numberHere, line, at);
    if (found !== null) {
      const [whole, figure = '', scale = ''] = found;
      at += whole.length;
      if (matchAt(goesOn, line, at) !== null) {
        const rest = matchAt(blob, line, at)?.[0] ?? '';
        tokens.push({ kind: 'mark', text: `${whole}${rest}` });
        at += rest.length;
        continue;
      }
      const value = Number(figure.replaceAll(',', '')) * (scales[scale] ?? 1);
      tokens.push({ kind: 'number', value, text: figure });
      continue;
    }
    const none = /\w/.test(before) ? null : matchAt(noNumber, line, at);
    if (none !== null) {
      tokens.push({ kind: 'mark', text: none[0] });
      at += none[0].length;
      continue;
    }
    const word = matchAt(wordHere, line, at);
    if (word !== null) {
      words(word[0]).forEach((exact, index) => {
        const glued = index > 0 || /[\w./-]/.test(before);
        tokens.push({ kind: 'word', text: exact.toLowerCase(), exact, glued });
      });
      at += word[0].length;
      continue;
    }
    tokens.push({ kind: 'mark', text: letter });
    at += 1;
  }
  return tokens;
}
