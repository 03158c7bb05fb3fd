import { stringify } from 'csv-stringify/sync';

/**
 * Rows as RFC 4180 has them. A text that a spreadsheet would compute, because it begins as a formula, gets an apostrophe
 * in front; numbers stay as they are. Nothing, and what a table shows as `-`, is an empty cell.
 */
export function csvText(rows: readonly (readonly (string | number | boolean | null)[])[]): string {
  const filled = rows.map((row) => row.map((cell) => (cell === '-' ? '' : cell)));
  return stringify(filled, { escape_formulas: true, cast: { boolean: String } });
}
