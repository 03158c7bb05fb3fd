/** Seconds of the monotonic clock (CLOCK_MONOTONIC), which native code reads too and all processes of a host share. */
export function monotonicSeconds(): number {
  return Number(process.hrtime.bigint()) / 1e9;
}
