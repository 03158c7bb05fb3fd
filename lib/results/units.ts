/** Numbers as text: sizes in KiB and MiB, powers of 1024; rates in GB/s, 1e9 bytes per second. */

/** Bytes of a MiB, the unit of bucket and buffer sizes. */
export const mebibyte = 2 ** 20;

/** `257.991328 MB` without the unit: MXNet's lines have sizes in 1e6 bytes with six decimals. */
export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(6);
}

/** `11.10 GB/s`, with more decimals below 0.1. */
export function bandwidthText(bytesPerSecond: number): string {
  const value = bytesPerSecond / 1e9;
  return `${value.toFixed(value < 0.1 ? 5 : 2)} GB/s`;
}

/** `8 B`, `1 KiB`, `97.46 MiB`: at most four digits. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = bytes;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return `${String(Number(value.toPrecision(4)))} ${units[unit] ?? ''}`;
}

/** `23.242 ms`, `1.17 us`: four significant digits in a suitable unit. */
export function timeText(seconds: number): string {
  if (seconds >= 1) return `${seconds.toPrecision(4)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toPrecision(4)} ms`;
  return `${(seconds * 1e6).toPrecision(4)} us`;
}

/** Above three quarters of a limit little can be gained; below half something specific is wrong. */
export const shareLevels = { good: 0.75, fair: 0.5 } as const;

/** `82 %`, `3.4 %`; rounded to the correct side of the verdict levels and of `limits`: `49.9 %`. */
export function percentText(ratio: number, limits: readonly number[] = []): string {
  const all = [shareLevels.fair, shareLevels.good, ...limits];
  const hundredths = all.map((limit) => limit * 100);
  return `${sidedText(ratio * 100, ratio < 0.1 ? 1 : 0, hundredths)} %`;
}

/** With at least this many decimals, and enough to show the side of the limits: 0.996 is not 1.00. */
export function sidedText(value: number, decimals: number, limits: readonly number[]): string {
  const shown = value.toFixed(decimals);
  const isTrue = limits.every((limit) => side(Number(shown), limit) === side(value, limit));
  return isTrue || decimals >= mostDecimals ? shown : sidedText(value, decimals + 1, limits);
}

/** A closer value is at the limit: 1 - 0.95 is 0.05. */
const mostDecimals = 9;
const side = (value: number, limit: number): number =>
  Math.abs(value - limit) < 10 ** -mostDecimals ? 0 : Math.sign(value - limit);

/** `1 case`, `14 cases`. */
export function countText(count: number, one: string, several = `${one}s`): string {
  return `${String(count)} ${count === 1 ? one : several}`;
}
