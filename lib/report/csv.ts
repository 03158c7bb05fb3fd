import { stringify } from 'csv-stringify/sync';

/** Finer than any clock; what is beyond is what adding and subtracting left. */
const digits = 12;

function rounded(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(digits));
}

/**
 * Rows as RFC 4180 has them. A text that a spreadsheet would compute, because it begins as a formula, gets an apostrophe
 * in front; numbers have at most twelve digits, whole ones all. Nothing, and what a table shows as `-`, is an empty cell.
 */
export function csvText(rows: readonly (readonly (string | number | boolean | null)[])[]): string {
  const filled = rows.map((row) =>
    row.map((cell) => (cell === '-' ? '' : typeof cell === 'number' ? rounded(cell) : cell)),
  );
  return stringify(filled, { escape_formulas: true, cast: { boolean: String } });
}
