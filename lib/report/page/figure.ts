// Which figure answers a case, and at which of its sizes.
import { bandwidthText, timeText } from '../../results/units.js';
import { rateOf } from '../charts/speedup.js';
import type { Measured } from '../repeats.js';
import { rateText } from '../verdict-words.js';

/** One figure of a case, as its kind of case is read. */
export interface Figure {
  readonly read: (result: Measured) => number;
  readonly text: (value: number) => string;
}

const time: Figure = { read: ({ statistics }) => statistics.medianSeconds, text: timeText };
const bandwidth: Figure = {
  read: ({ busBandwidth }) => busBandwidth.bytesPerSecond,
  text: bandwidthText,
};

/** Of a way between two places latency or bandwidth is what is asked for, whatever it is counted in besides. */
function askedRate(result: Measured): ReturnType<typeof rateOf> {
  const isWay = result.parameters.from !== undefined;
  return result.limit !== null || isWay ? null : rateOf(result);
}

/** Small messages are what latency and a rate of messages are asked for, large ones what bandwidth is. */
export function sizeAsked(cases: readonly Measured[], sizes: ReadonlySet<number>): number {
  const all = cases.map(({ bytes }) => bytes).filter((bytes) => sizes.has(bytes));
  const isOfSmall = cases.every(
    (one) => one.parameters.quantity === 'latency' || askedRate(one)?.unit === 'messages',
  );
  return isOfSmall ? Math.min(...all) : Math.max(...all);
}

/** Where nothing limits a case, such as a training's step, bandwidth is not what is asked for. */
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
