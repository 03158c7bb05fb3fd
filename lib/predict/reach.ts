// The range of a forecast: links measured in one memory say nothing about a network.
import { argumentError, ruleError } from '../errors.js';
import type { PredictOptions } from './scaling.js';

type Links = Pick<PredictOptions, 'inside' | 'between'>;

/** The maximum number of workers for these links. */
export function mostWorkers({ inside, between }: Links): number {
  if (between !== undefined) return Infinity;
  return inside.origin?.gpus ?? inside.origin?.cores ?? Infinity;
}

/** Whether hosts are to have more workers than the measured one has cores. */
export function isBeyondCores({ inside, perHost = 0 }: PredictOptions): boolean {
  return perHost > (inside.origin?.cores ?? Infinity);
}

/** Where the links end, and how to extend a forecast; undefined if unlimited. */
export function reachText(links: Links): string | undefined {
  const most = mostWorkers(links);
  if (most === Infinity) return undefined;
  const what = links.inside.origin?.gpus === undefined ? 'cores' : 'GPUs';
  return (
    `the links were measured on ${String(most)} ${what} of one host, which says nothing about a network; for more ` +
    'workers, give a link between hosts, microseconds of a message and GB/s: ' +
    `--between-link 50,3.1 --per-host ${String(most)} (between and perHost)`
  );
}

/**
 * @throws RangeError for more workers than the links allow, and for a link between hosts that was measured within one
 */
export function checkReach(options: PredictOptions): void {
  const { between } = options;
  if (between?.origin?.network === false) {
    throw argumentError('ERR_OUT_OF_RANGE', 'between', 'a sweep of ranks on several hosts', {
      text: between.origin.text,
    });
  }
  const most = mostWorkers(options);
  const beyond = options.workers.find((count) => count > most);
  if (beyond === undefined) return;
  throw ruleError('ERR_OUT_OF_RANGE', `workers ${String(beyond)}: ${reachText(options)!}`);
}
