// How long a rank waits for others where nobody says.

/** Milliseconds of a call, or until all have met. */
export const defaultTimeoutMs = 30_000;
