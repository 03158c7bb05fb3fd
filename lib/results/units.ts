/** Numbers in words, with the units of the documentation: MB and GB are 1e6 and 1e9 bytes. */

/** Bytes of a MiB, which bucket and buffer sizes are counted in. */
export const mebibyte = 2 ** 20;

/** `257.991328 MB` without the unit: six decimals, as MXNet prints sizes. */
export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(6);
}

/** `11.10 GB/s`, with more decimals below 0.1. */
export function bandwidthText(bytesPerSecond: number): string {
  const value = bytesPerSecond / 1e9;
  return `${value.toFixed(value < 0.1 ? 5 : 2)} GB/s`;
}

/** `918.1 MB`, `1.32 GB`, `12.5 kB`, `8 bytes`. */
export function sizeText(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(2)} GB`;
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(1)} MB`;
  if (bytes >= 1e3) return `${(bytes / 1e3).toFixed(1)} kB`;
  return `${bytes} bytes`;
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
