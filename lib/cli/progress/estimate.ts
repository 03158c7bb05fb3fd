// What a long run says of the time it takes, where no bar says it.

/** A run that is over sooner needs no word. */
const leastTold = 10;

/** `40 s`, `3 min`, `2 h 5 min`: as exact as a forecast is. */
export function durationText(seconds: number): string {
  if (seconds < 90) return `${String(Math.ceil(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${String(minutes)} min`;
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  return `${String(hours)} h${rest === 0 ? '' : ` ${String(rest)} min`}`;
}

/**
 * The line for standard error; undefined where there is nothing worth saying.
 *
 * @param done of so many cases; 0 before the first
 * @param quicker what to type for a first look
 */
export function estimateLine(
  secondsLeft: number,
  done: number,
  total: number,
  quicker?: string,
): string | undefined {
  if (secondsLeft < leastTold || done === total) return undefined;
  const time = durationText(secondsLeft);
  if (done > 0)
    return `${String(done)} of ${String(total)} cases are done, about ${time} are left.`;
  const hint = quicker === undefined ? '' : ` ${quicker} gives a first look in seconds.`;
  return `This takes about ${time} (${String(total)} ${total === 1 ? 'case' : 'cases'}).${hint}`;
}
