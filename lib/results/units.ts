/** Numbers in words: sizes in KiB and MiB, powers of 1024; rates in GB/s, 1e9 bytes a second. */

/** Bytes of a MiB, which bucket and buffer sizes are counted in. */
export const mebibyte = 2 ** 20;

/** `257.991328 MB` without the unit: MXNet prints sizes in 1e6 bytes, with six decimals. Only its own lines do. */
export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(6);
}

/** `11.10 GB/s`, with more decimals below 0.1. */
export function bandwidthText(bytesPerSecond: number): string {
  const value = bytesPerSecond / 1e9;
  return `${value.toFixed(value < 0.1 ? 5 : 2)} GB/s`;
}

/** `8 B`, `1 KiB`, `97.46 MiB`: four digits at most, and the sizes of a sweep, powers of two, in few. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = bytes;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return `${String(Number(value.toPrecision(4)))} ${units[unit] ?? ''}`;
}

/** `23.242 ms`, `1.17 us`: four significant digits in the unit that fits. */
export function timeText(seconds: number): string {
  if (seconds >= 1) return `${seconds.toPrecision(4)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toPrecision(4)} ms`;
  return `${(seconds * 1e6).toPrecision(4)} us`;
}

/** At three quarters of a limit there is little left to win; below half something specific is wrong. */
export const shareLevels = { good: 0.75, fair: 0.5 } as const;

/** `82 %`, `3.4 %`; beside what a share of a limit is judged by, and beside `limits`, on its own side: `49.9 %`. */
export function percentText(ratio: number, limits: readonly number[] = []): string {
  const all = [shareLevels.fair, shareLevels.good, ...limits];
  const hundredths = all.map((limit) => limit * 100);
  return `${sidedText(ratio * 100, ratio < 0.1 ? 1 : 0, hundredths)} %`;
}

/** With at least so many decimals, and as many as show on which side of the limits it lies: 0.996 is not 1.00. */
export function sidedText(value: number, decimals: number, limits: readonly number[]): string {
  const shown = value.toFixed(decimals);
  const isTrue = limits.every((limit) => side(Number(shown), limit) === side(value, limit));
  return isTrue || decimals >= mostDecimals ? shown : sidedText(value, decimals + 1, limits);
}

/** Closer than this to a limit is at it: 1 - 0.95 is 0.05. */
const mostDecimals = 9;
const side = (value: number, limit: number): number =>
  Math.abs(value - limit) < 10 ** -mostDecimals ? 0 : Math.sign(value - limit);

/** `1 case`, `14 cases`. */
export function countText(count: number, one: string, several = `${one}s`): string {
  return `${String(count)} ${count === 1 ? one : several}`;
}
