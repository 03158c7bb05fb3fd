// The clock that everybody reads, and how long a rank waits for others.

/** Seconds of the monotonic clock (CLOCK_MONOTONIC), which native code reads too and all processes of a host share. */
export function monotonicSeconds(): number {
  return Number(process.hrtime.bigint()) / 1e9;
}

/** Milliseconds of a call, or until all have met, where nobody says. */
export const defaultTimeoutMs = 30_000;
