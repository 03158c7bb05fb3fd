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

/** `82 %`, `3.4 %`. */
export function percentText(ratio: number): string {
  return `${(ratio * 100).toFixed(ratio < 0.1 ? 1 : 0)} %`;
}

/** `1 case`, `14 cases`. */
export function countText(count: number, one: string, several = `${one}s`): string {
  return `${String(count)} ${count === 1 ? one : several}`;
}
