// Lines for people at a terminal: as wide as it is, with verdicts in colour. What goes to a pipe or a file stays as it is.
import { styleText } from 'node:util';

import type { Io, Output } from '../io.js';
import { terminalWidth } from './terminal-width.js';
import { narrowestTable } from '../../report/index.js';

const colours = {
  good: 'green',
  ok: 'green',
  fair: 'yellow',
  degraded: 'yellow',
  poor: 'red',
  missing: 'red',
  WRONG: 'red',
  better: 'green',
  mended: 'green',
  faster: 'green',
  'no regression': 'green',
  unclear: 'yellow',
  changed: 'yellow',
  'changed environment': 'yellow',
  worse: 'red',
  failed: 'red',
  slower: 'red',
  regression: 'red',
} as const;
type Level = keyof typeof colours;

/** A field of a summary or a finding, up to its text. */
const field =
  /^(?:# ?)?(?:(?:ok|degraded|missing) {1,20})?(?: {0,80}-> | {0,4}[\w:./'-]+(?: [\w']+)? {2,20}(?=\S))/;
/** What a line says more of, `assumed: `, or where it begins. */
const beginning = /^(?:# ?)? *(?:[A-Za-z][\w'-]*(?: [\w'-]+){0,2}: (?=\S))?/;
const verdict = /^(?:# ?)? {2}verdict {4}(good|fair|poor)(?=:)/;
const finding = /^ *(?:\S+ +)?(ok|degraded|missing)(?= )/;
/** How a case of a comparison differs, the ratio of all of them, and how it ended. */
const comparison = [
  /^(better|mended|unclear|changed|worse|failed|missing)(?= {2}|: )/,
  /^new is [\d.]+ ± [\d.]+ times (faster|slower)(?= )/,
  /^(no regression|regression|changed environment)(?=: | beyond )/,
];

/** Not narrower, or words would stand one below the other. */
const narrowest = 40;

/** Whether escapes are wanted: https://no-color.org. */
export function hasColour(output: Output, env: Io['env']): boolean {
  const { NO_COLOR: none = '', TERM: terminal } = env;
  return output.isTTY === true && none === '' && terminal !== 'dumb';
}

/** In colour what a line says of a figure or a part of the machine. */
function painted(line: string): string {
  const match = [verdict, finding, ...comparison]
    .map((one) => one.exec(line))
    .find((found) => found !== null);
  const level = match?.[1] as Level | undefined;
  if (match === undefined || level === undefined) return line;
  const start = match[0].length - level.length;
  const rest = line.slice(match[0].length);
  // The stream was asked before: it may be a test's.
  const word = styleText(colours[level], level, { validateStream: false });
  return line.slice(0, start) + word + rest;
}

/** A line of words in lines of a width, those that follow under the first one's text. A table that fits no narrower terminal is left alone. */
export function wrapped(line: string, width: number): string[] {
  const room = Math.max(width, narrowest);
  const head = (field.exec(line) ?? beginning.exec(line))![0];
  // Two gaps are a table's.
  const isTable = room < narrowestTable && /\S {2,}\S/.test(line.slice(head.length));
  if (line.length <= room || isTable) return [line];
  const comment = line.startsWith('# ') ? '# ' : '';
  const hang = comment.padEnd(Math.min(head.length, room / 2));
  const lines: string[] = [];
  let rest = line;
  while (rest.length > room) {
    const from = lines.length === 0 ? head.length : hang.length;
    const at = rest.lastIndexOf(' ', room);
    const end = at > from ? at : rest.indexOf(' ', room);
    if (end < 0) break;
    lines.push(rest.slice(0, end).trimEnd());
    rest = hang + rest.slice(end + 1);
  }
  return [...lines, rest];
}

/** Lines as this stream should show them. */
export function terminalLines(
  lines: readonly string[],
  output: Output,
  env: Io['env'],
): readonly string[] {
  const columns = terminalWidth(output, env);
  if (columns === Infinity && output.isTTY !== true) return lines;
  const fitting = lines.flatMap((line) => wrapped(line, columns));
  return hasColour(output, env) ? fitting.map(painted) : fitting;
}

/** Lines for standard output, made for the room that it has. */
export function shown(lines: (room: number) => readonly string[], io: Io): string {
  const room = terminalWidth(io.stdout, io.env);
  return terminalLines(lines(room), io.stdout, io.env).join('\n');
}

/** Writes a text that ends in a line break; what people read is made for the room that there is. */
export function writeText(text: (room?: number) => string, forPeople: boolean, io: Io): void {
  const lines = (room: number): string[] => text(room).split('\n');
  io.stdout.write(forPeople ? shown(lines, io) : text());
}
