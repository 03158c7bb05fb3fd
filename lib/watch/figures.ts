// Figures in what a run prints: the tables and lines of gradlink's own tools and of those that it stands in for.
import { ncclAverage, ncclHeading, ncclRow, type NcclHeading } from '../printed/nccl-tests.js';
import { NvText } from '../printed/nvbandwidth.js';
import { osuHeading, osuRow, type OsuHeading } from '../printed/osu.js';
import { cellsOf, plainLine, tableLine } from '../printed/plain.js';
import { unitNamed, type Unit } from '../printed/units.js';
import { figuresOfText, noUnit, type Figure } from './rates.js';

const gigabytes = unitNamed('GB/s') ?? noUnit;

/** Reads the lines of a run one after the other: what a row means stands in the headings before it. */
export class FigureReader {
  private nccl: NcclHeading | undefined;
  private ncclSeen = false;
  private osu: OsuHeading | undefined;
  private readonly nv = new NvText();
  private nvTest = 'bandwidth';
  private readonly nvSeen = new Set<string>();

  /** The figures of a line; none where it has none that is known. */
  read(text: string): Figure[] {
    const line = plainLine(text);
    const row = tableLine(line);
    const cells = cellsOf(row);
    const average = ncclAverage(cells);
    if (average !== undefined) return this.averageFigures(average);
    if (cells.length === 0 || this.reads(row, cells)) return [];
    const found = this.nvFigures(row, cells) ?? this.osuFigures(cells) ?? this.ncclFigures(row);
    return (found ?? figuresOfText(line)).filter(({ value }) => Number.isFinite(value));
  }

  /** Whether it is a heading or a comment of a table. */
  private reads(line: string, cells: readonly string[]): boolean {
    if (cells[0]?.startsWith('#') !== true) return false;
    this.nccl = ncclHeading(cells) ?? this.nccl;
    this.osu = osuHeading(line) ?? this.osu;
    return true;
  }

  /** `undefined`: no line of its. Of the same test a sum is told where its parts were not. */
  private nvFigures(line: string, cells: readonly string[]): Figure[] | undefined {
    const read = this.nv.read(line, cells);
    if (read === undefined) return undefined;
    if (read.kind === 'test') this.nvTest = read.test;
    if (read.kind === 'row') {
      this.nvSeen.add(this.nvTest);
      return read.cells.map(({ value }) => ({ name: this.nvTest, value, unit: read.unit }));
    }
    if (read.kind !== 'sum' || this.nvSeen.has(read.test)) return [];
    return [{ name: `${read.test}, sum`, value: read.value, unit: read.unit }];
  }

  private osuFigures(cells: readonly string[]): Figure[] | undefined {
    const { osu } = this;
    const row = osu === undefined ? undefined : osuRow(cells, osu);
    if (osu === undefined || row === undefined) {
      // What follows is another program's.
      this.osu = undefined;
      return undefined;
    }
    return osu.columns.flatMap(({ name, unit }, index): Figure[] => {
      const value = row.values[index];
      return unit === undefined || value === undefined ? [] : [{ name, value, unit }];
    });
  }

  /** Told where its rows were not: scripts keep the last line alone. */
  private averageFigures(value: number): Figure[] {
    return this.ncclSeen ? [] : [{ name: 'bus bandwidth, average', value, unit: gigabytes }];
  }

  private ncclFigures(line: string): Figure[] | undefined {
    const row = ncclRow(line, this.nccl) ?? ncclRow(line);
    if (row === undefined) return undefined;
    this.ncclSeen = true;
    const figure = (where: string, busbw: number | undefined): Figure[] =>
      busbw === undefined
        ? []
        : [{ name: `bus bandwidth, ${where}`, value: busbw, unit: gigabytes }];
    return [
      ...figure('out of place', row.outOfPlace?.busbw),
      ...figure('in place', row.inPlace?.busbw),
    ];
  }
}

/** What is drawn as one line: its unit is that of its first point. */
export interface FigureLine {
  readonly name: string;
  readonly unit: string;
  readonly values: readonly number[];
}

/** The points of each line that a run draws, in the order in which the lines began. */
export class Figures {
  private readonly reader = new FigureReader();
  private moves = 0;
  private readonly points = new Map<
    string,
    { readonly name: string; readonly unit: Unit; readonly values: number[]; moved: number }
  >();

  /** @param only a part of the names of those that are drawn; absent: all */
  constructor(private readonly only = '') {}

  /** @returns whether there was a figure in it that is drawn */
  add(line: string): boolean {
    const found = this.reader.read(line).filter(({ name }) => name.includes(this.only));
    for (const { name, value, unit } of found) {
      const key = JSON.stringify([name, unit.dimension]);
      const line = this.points.get(key) ?? { name, unit, values: [], moved: 0 };
      line.moved = this.moves += 1;
      // A program that goes over to the next unit goes on in the first one.
      line.values.push(
        unit.unit === line.unit.unit ? value : (value * unit.factor) / line.unit.factor,
      );
      this.points.set(key, line);
    }
    return found.length > 0;
  }

  /** The lines that moved last, in their order. */
  latest(most: number): readonly FigureLine[] {
    const all = this.lines;
    if (all.length <= most) return all;
    const moved = [...this.points.values()].map((line) => line.moved);
    const least = moved.toSorted((a, b) => b - a)[most] ?? 0;
    return all.filter((_, index) => (moved[index] ?? 0) > least);
  }

  get lines(): readonly FigureLine[] {
    return [...this.points.values()].map(({ name, unit, values }) => ({
      name,
      unit: unit.unit,
      values,
    }));
  }
}
