import { stringify } from 'csv-stringify/sync';

/** Finer than any clock; further digits are rounding noise. */
const digits = 12;

function rounded(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(digits));
}

/**
 * Rows in RFC 4180. A text that a spreadsheet would take for a formula gets a leading apostrophe. Fractions have at
 * most twelve digits. Missing values, and `-` in a table, become empty cells.
 */
export function csvText(rows: readonly (readonly (string | number | boolean | null)[])[]): string {
  const filled = rows.map((row) =>
    row.map((cell) => (cell === '-' ? '' : typeof cell === 'number' ? rounded(cell) : cell)),
  );
  return stringify(filled, { escape_formulas: true, cast: { boolean: String } });
}
