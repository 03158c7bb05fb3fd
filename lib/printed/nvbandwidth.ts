// Parses text of nvbandwidth: for each test its name, a caption with the unit, a matrix and the sum.
import { numberOf } from './tokens.js';
import { unitNamed, type Unit } from './units.js';

/** A cell from the row's place to the column's, as in the caption. */
export interface NvCell {
  readonly row: string;
  readonly column: string;
  readonly value: number;
}

/** The kind of a line. */
export type NvLine =
  | { readonly kind: 'test'; readonly test: string }
  | { readonly kind: 'caption'; readonly caption: string; readonly unit: Unit }
  | { readonly kind: 'columns' }
  | { readonly kind: 'row'; readonly cells: readonly NvCell[]; readonly unit: Unit }
  | { readonly kind: 'sum'; readonly test: string; readonly value: number; readonly unit: Unit }
  | { readonly kind: 'waived'; readonly text: string };

/** The unit of a caption. */
export function nvUnit(caption: string): Unit | undefined {
  return unitNamed(/\(([^()]*)\)\s*$/.exec(caption)?.[1] ?? '');
}

const isPlace = (text: string): boolean => /^\d+$/.test(text);

/** Reads line by line. */
export class NvText {
  private test: string | undefined;
  private unit: Unit | undefined;
  private expected: 'columns' | 'nothing' | readonly string[] = 'nothing';

  /** @returns undefined for other programs' lines */
  read(line: string, cells: readonly string[]): NvLine | undefined {
    const [, test] = /^Running ([\w-]+)\.?$/.exec(line.trim()) ?? [];
    if (test !== undefined) {
      this.test = test;
      this.unit = undefined;
      this.expected = 'nothing';
      return { kind: 'test', test };
    }
    const unit = /\(row\).*\(column\)/.test(line) ? nvUnit(line) : undefined;
    if (unit !== undefined) {
      this.unit = unit;
      this.expected = 'columns';
      return { kind: 'caption', caption: line.trim(), unit };
    }
    return this.sumOf(cells) ?? this.rowOf(cells) ?? this.waivedOf(line);
  }

  private sumOf([what, test = '', value = '', ...more]: readonly string[]): NvLine | undefined {
    const sum = numberOf(value);
    if (what !== 'SUM' || sum === undefined || more.length > 0) return undefined;
    // The caption may be missing; the name also tells the unit.
    const unit =
      (test === this.test ? this.unit : undefined) ??
      unitNamed(test.includes('latency') ? 'ns' : 'GB/s');
    return unit === undefined ? undefined : { kind: 'sum', test, value: sum, unit };
  }

  private rowOf(cells: readonly string[]): NvLine | undefined {
    const { unit } = this;
    if (unit === undefined || this.expected === 'nothing' || cells.length === 0) return undefined;
    const columns = this.expected;
    if (columns === 'columns') {
      this.expected = cells.every(isPlace) ? cells : 'nothing';
      return this.expected === 'nothing' ? undefined : { kind: 'columns' };
    }
    const [row = '', ...values] = cells;
    const read = values.map(numberOf);
    const isRow = isPlace(row) && values.length === columns.length;
    if (!isRow || !values.every((one, index) => one === 'N/A' || read[index] !== undefined)) {
      this.expected = 'nothing';
      return undefined;
    }
    const known = read.flatMap((value, index): NvCell[] =>
      value === undefined ? [] : [{ row, column: columns[index] ?? '', value }],
    );
    return { kind: 'row', cells: known, unit };
  }

  private waivedOf(line: string): NvLine | undefined {
    if (this.test === undefined || !/^(?:Waived|Error|Not Found)\b/i.test(line.trim()))
      return undefined;
    return { kind: 'waived', text: line.trim() };
  }
}
