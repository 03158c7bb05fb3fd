import { stringify } from 'csv-stringify/sync';

/** Nanoseconds of a quarter of an hour. What a double has behind them is left by sums, not measured. */
const digits = 12;

/**
 * Rows as RFC 4180 has them. A text that a spreadsheet would compute, because it begins as a formula, gets an apostrophe
 * in front; numbers stay as they are. Nothing, and what a table shows as `-`, is an empty cell.
 * A number that is not whole has twelve significant digits.
 */
export function csvText(rows: readonly (readonly (string | number | boolean | null)[])[]): string {
  const filled = rows.map((row) =>
    row.map((cell) => {
      if (typeof cell === 'number' && !Number.isInteger(cell)) {
        return Number(cell.toPrecision(digits));
      }
      return cell === '-' ? '' : cell;
    }),
  );
  return stringify(filled, { escape_formulas: true, cast: { boolean: String } });
}
