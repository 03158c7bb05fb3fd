// Selects the figure and the size that represent a case.
import { bandwidthText, timeText } from '../../results/units.js';
import { rateOf } from '../charts/speedup.js';
import type { Measured } from '../repeats.js';
import { rateText } from '../verdict-words.js';

/** The figure of a case, depending on its kind. */
export interface Figure {
  readonly read: (result: Measured) => number;
  readonly text: (value: number) => string;
}

const time: Figure = { read: ({ statistics }) => statistics.medianSeconds, text: timeText };
const bandwidth: Figure = {
  read: ({ busBandwidth }) => busBandwidth.bytesPerSecond,
  text: bandwidthText,
};

/** Between two places latency or bandwidth matters, whatever else is counted. */
function askedRate(result: Measured): ReturnType<typeof rateOf> {
  const isWay = result.parameters.from !== undefined;
  return result.limit !== null || isWay ? null : rateOf(result);
}

/** Small messages matter for latency and message rates, large ones for bandwidth. */
export function sizeAsked(cases: readonly Measured[], sizes: ReadonlySet<number>): number {
  const all = cases.map(({ bytes }) => bytes).filter((bytes) => sizes.has(bytes));
  const isOfSmall = cases.every(
    (one) => one.parameters.quantity === 'latency' || askedRate(one)?.unit === 'messages',
  );
  return isOfSmall ? Math.min(...all) : Math.max(...all);
}

/** Without a limit, as for a training step, bandwidth does not matter. */
export function figureOf(result: Measured): Figure {
  const { limit, busBandwidth, parameters } = result;
  const rate = askedRate(result);
  if (rate !== null) {
    const { unit } = rate;
    return {
      read: (one) => rateOf(one)?.value ?? 0,
      text: (value) => rateText({ unit, value }),
    };
  }
  const isTime =
    parameters.quantity === 'latency' || (limit === null && parameters.quantity !== 'bandwidth');
  return isTime || busBandwidth.bytesPerSecond <= 0 ? time : bandwidth;
}
