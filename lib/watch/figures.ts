// Figures in a run's output: tables and lines of gradlink's tools and of the tools that they replace.
import { ncclAverage, ncclHeading, ncclRow, type NcclHeading } from '../printed/nccl-tests.js';
import { NvText } from '../printed/nvbandwidth.js';
import { osuHeading, osuRow, type OsuHeading } from '../printed/osu.js';
import { cellsOf, plainLine, tableLine } from '../printed/plain.js';
import { unitNamed, type Unit } from '../printed/units.js';
import { figuresOfText, noUnit, type Figure } from './rates.js';

const gigabytes = unitNamed('GB/s') ?? noUnit;

/** Reads the lines of a run in order: earlier headings give rows their meaning. */
export class FigureReader {
  private nccl: NcclHeading | undefined;
  private ncclSeen = false;
  private osu: OsuHeading | undefined;
  private readonly nv = new NvText();
  private nvTest = 'bandwidth';
  private readonly nvSeen = new Set<string>();

  /** The figures of a line; empty if there are none. */
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

  /** Undefined for lines of other programs. A sum counts only if its parts were not printed. */
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
      // What follows is from another program.
      this.osu = undefined;
      return undefined;
    }
    return osu.columns.flatMap(({ name, unit }, index): Figure[] => {
      const value = row.values[index];
      return unit === undefined || value === undefined ? [] : [{ name, value, unit }];
    });
  }

  /** Used only if its rows were not printed: scripts often keep just the last line. */
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

/** A series to draw, in the unit of its first point. */
export interface FigureLine {
  readonly name: string;
  readonly unit: string;
  readonly values: readonly number[];
}

/** The series of a run, in order of appearance. */
export class Figures {
  private readonly reader = new FigureReader();
  private moves = 0;
  private readonly points = new Map<
    string,
    { readonly name: string; readonly unit: Unit; readonly values: number[]; moved: number }
  >();

  /** @param only draw names that contain this; absent: all */
  constructor(private readonly only = '') {}

  /** @returns whether the line added a point */
  add(line: string): boolean {
    const found = this.reader.read(line).filter(({ name }) => name.includes(this.only));
    for (const { name, value, unit } of found) {
      const key = JSON.stringify([name, unit.dimension]);
      const line = this.points.get(key) ?? { name, unit, values: [], moved: 0 };
      line.moved = this.moves += 1;
      // Later points are converted to the unit of the first one.
      line.values.push(
        unit.unit === line.unit.unit ? value : (value * unit.factor) / line.unit.factor,
      );
      this.points.set(key, line);
    }
    return found.length > 0;
  }

  /** The series that changed last, in order of appearance. */
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
