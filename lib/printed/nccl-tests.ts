// Parses tables of nccl-tests of any version, and of `gradlink collectives`, which prints the same columns.
import { cellsOf } from './plain.js';
import { numberOf } from './tokens.js';

/** The figures of one placement; null for `N/A`. */
export interface NcclFigures {
  readonly microseconds: number;
  /** GB/s. */
  readonly algbw: number | null;
  readonly busbw: number;
  readonly wrong: number | null;
}

export interface NcclRow {
  readonly bytes: number;
  readonly count: number | null;
  readonly type: string | null;
  readonly redop: string | null;
  readonly root: number | null;
  readonly outOfPlace: NcclFigures | null;
  readonly inPlace: NcclFigures | null;
}

/** Columns of the heading: `size count type redop root time algbw busbw #wrong ...`. */
export type NcclHeading = readonly string[];

/** The columns of a heading; undefined for other lines. */
export function ncclHeading(cells: readonly string[]): NcclHeading | undefined {
  const names = cells[0] === '#' ? cells.slice(1) : undefined;
  return names?.[0] === 'size' && names.includes('busbw') ? names : undefined;
}

/** The mean below a table in GB/s; undefined for other lines. */
export function ncclAverage(cells: readonly string[]): number | undefined {
  const [, value] = /^(?:# ?)?Avg bus bandwidth ?: ?(\S+)$/.exec(cells.join(' ')) ?? [];
  return numberOf(value ?? '');
}

const isWhole = (text: string | undefined): boolean => text !== undefined && /^\d+$/.test(text);
const isWord = (text: string | undefined): text is string =>
  text !== undefined && text !== 'N/A' && /^[a-z]\w*$/i.test(text);

/** The cells of one placement. */
interface Group {
  readonly time: number;
  readonly algbw: number | undefined;
  readonly busbw: number;
  readonly wrong: number | undefined;
}

interface Places {
  readonly count: number | undefined;
  readonly type: number | undefined;
  readonly redop: number | undefined;
  readonly root: number | undefined;
  readonly outOfPlace: Group | undefined;
  readonly inPlace: Group | undefined;
}

/** A replayed trace leaves missing out-of-place figures blank. */
const leftOut = / {30}/;

/** By the heading, which also shows columns dropped in a narrow terminal. */
function placesBy(heading: NcclHeading, cells: readonly string[], line: string): Places {
  const at = (names: readonly string[], from = 0, to = heading.length): number | undefined => {
    const index = heading.findIndex((name, i) => i >= from && i < to && names.includes(name));
    return index < 0 ? undefined : index;
  };
  const times = ['time', 'cputime'];
  const first = at(times) ?? heading.length;
  const second = at(times, first + 1) ?? heading.length;
  const group = (from: number, to: number): Group | undefined => {
    const busbw = at(['busbw'], from, to);
    if (busbw === undefined || busbw >= cells.length) return undefined;
    return {
      time: from,
      algbw: at(['algbw'], from, to),
      busbw,
      wrong: at(['#wrong', 'error'], from, to),
    };
  };
  const names = {
    count: at(['count']),
    type: at(['type']),
    redop: at(['redop']),
    root: at(['root']),
  };
  const one = group(first, second);
  // Nothing before the figures is left blank.
  if (leftOut.test(line.trimStart())) return { ...names, outOfPlace: undefined, inPlace: one };
  return { ...names, outOfPlace: one, inPlace: group(second, heading.length) };
}

const figureCells = 4;
/** `-I` prints four more per placement. */
const withIterations = 8;

const groupFrom = (at: number): Group => ({
  time: at,
  algbw: at + 1,
  busbw: at + 2,
  wrong: at + 3,
});

/** The rounding error of a printed number: `1e+03` has one digit, `12.90` four. */
function looseness(text: string): number {
  const significant = (text.split(/e/i)[0] ?? '').replaceAll(/\D/g, '').replace(/^0+/, '').length;
  return 0.02 + 0.6 * 10 ** (1 - Math.max(1, significant));
}

/** Whether time and algbw match the size, which distinguishes a root from a time without a heading. */
function fits(bytes: number, cells: readonly string[], at: number): boolean {
  const figures = figuresOf(cells, groupFrom(at));
  if (typeof figures?.algbw !== 'number' || figures.microseconds <= 0) return false;
  const expected = bytes / figures.microseconds / 1e3;
  const loose = looseness(cells[at] ?? '') + looseness(cells[at + 1] ?? '');
  return Math.abs(figures.algbw - expected) <= 0.0051 + loose * expected;
}

/** From the numbers alone, for logs without the heading. */
function placesIn(bytes: number, cells: readonly string[], line: string): Places | undefined {
  if (!isWhole(cells[1]) || !isWord(cells[2])) return undefined;
  const redop = isWord(cells[3]) ? 3 : undefined;
  const next = redop === undefined ? 3 : 4;
  const rooted = /^-?\d+$/.test(cells[next] ?? '');
  const placed = (root: number | undefined, first: number): Places => {
    const names = { count: 1, type: 2, redop, root };
    const left = cells.length - first;
    const one = groupFrom(first);
    if (left < 2 * figureCells) {
      return leftOut.test(line.trimStart())
        ? { ...names, outOfPlace: undefined, inPlace: one }
        : { ...names, outOfPlace: one, inPlace: undefined };
    }
    const near = first + figureCells;
    const far = left >= 2 * withIterations && !fits(bytes, cells, near);
    const second = groupFrom(far ? first + withIterations : near);
    return { ...names, outOfPlace: one, inPlace: second };
  };
  const candidates = [...(rooted ? [placed(next, next + 1)] : []), placed(undefined, next)];
  const fitting = candidates.find(({ outOfPlace, inPlace }) =>
    [outOfPlace, inPlace].some((group) => group !== undefined && fits(bytes, cells, group.time)),
  );
  if (fitting !== undefined) return fitting;
  // If bandwidths do not count whole sizes, the number of cells decides.
  return rooted && cells.length - next - 1 >= 2 * figureCells ? candidates[0] : undefined;
}

function figuresOf(cells: readonly string[], group: Group | undefined): NcclFigures | null {
  if (group === undefined) return null;
  const at = (index: number | undefined): number | undefined =>
    index === undefined ? undefined : numberOf(cells[index] ?? '');
  const [microseconds, busbw] = [at(group.time), at(group.busbw)];
  if (microseconds === undefined || busbw === undefined) return null;
  if (microseconds < 0 || busbw < 0) return null;
  const wrong = cells[group.wrong ?? NaN] ?? '';
  // Older versions print an error such as 1e-06 instead of a count.
  const isCount = Number.isInteger(numberOf(wrong) ?? NaN) && !wrong.startsWith('0e');
  return {
    microseconds,
    algbw: at(group.algbw) ?? null,
    busbw,
    wrong: isCount ? (numberOf(wrong) ?? null) : null,
  };
}

/** The row of a line from `plainLine`; undefined for other lines. */
export function ncclRow(line: string, heading?: NcclHeading): NcclRow | undefined {
  const cells = cellsOf(line);
  if (!isWhole(cells[0])) return undefined;
  const bytes = Number(cells[0]);
  const places =
    heading === undefined ? placesIn(bytes, cells, line) : placesBy(heading, cells, line);
  if (places === undefined) return undefined;
  const text = (at: number | undefined): string | undefined =>
    at === undefined ? undefined : cells[at];
  const [count, type, redop] = [text(places.count), text(places.type), text(places.redop)];
  if (places.count !== undefined && !isWhole(count)) return undefined;
  if (places.type !== undefined && !isWord(type)) return undefined;
  const root = numberOf(text(places.root) ?? '');
  const outOfPlace = figuresOf(cells, places.outOfPlace);
  const inPlace = figuresOf(cells, places.inPlace);
  if (outOfPlace === null && inPlace === null) return undefined;
  return {
    bytes,
    count: count === undefined ? null : Number(count),
    type: type ?? null,
    redop: redop === undefined || redop === 'none' || redop === 'N/A' ? null : redop,
    root: root === undefined || root < 0 ? null : root,
    outOfPlace,
    inPlace,
  };
}
