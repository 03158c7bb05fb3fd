// Averaging with windows: no rank waits for another.
import { argumentError } from '../../errors.js';
import { aFunction, aNumber, having, listOf, optionNames } from '../../checks.js';
import type { Rank } from '../../topology/rank.js';
import type { Exchange } from '../../topology/schedules.js';
import { commonNames, prepare, subtract } from './prepare.js';
import type { DecentralisedMethod, DecentralisedOptions, Vector } from './types.js';

const windowNames = optionNames<WindowPutMethodOptions>({
  ...commonNames,
  window: true,
  schedule: true,
});
const putWindow = having({ put: aFunction, update: aFunction });
const iterator = having({ next: aFunction });
const exchange = having({ destinations: listOf(aNumber) });

/** The used members of a window of the parameters. */
export interface PutWindow<V extends Vector = Vector> {
  /** Writes the values to this rank's buffers at the destinations, without their help. */
  put(values: V, options?: { readonly dstWeights: readonly Rank[] }): Promise<unknown>;
  /** Averages the parameters with what has arrived so far, in place. */
  update(): Promise<unknown>;
}

/** Options of {@link windowPut}. */
export interface WindowPutMethodOptions<V extends Vector = Vector> extends DecentralisedOptions<V> {
  /** The window of the parameters. */
  readonly window: PutWindow<V>;
  /**
   * The destinations of each step among the window's: `onePeerSchedule(graph, rank)` for example. Advanced once per
   * step. All destinations when absent.
   */
  readonly schedule?: Iterator<Pick<Exchange, 'destinations'>>;
}

/**
 * Window put: `w ← w − a g(w)`, puts w to the destinations and averages with what has arrived. No rank waits: a slow
 * rank's last values are used again. With a constant step size it ends near the minimum.
 */
export function windowPut<V extends Vector>(
  options: WindowPutMethodOptions<V>,
): DecentralisedMethod {
  const { parameters, evaluate, rate, given } = prepare(options, windowNames, 'windowPut');
  const { window, schedule } = given;
  putWindow(window, 'window');
  if (schedule !== undefined) iterator(schedule, 'schedule');
  return {
    async step() {
      subtract(parameters, await evaluate(), rate());
      const turn = schedule?.next();
      const options = turn === undefined ? [] : [{ dstWeights: destinationsOf(turn) }];
      await window.put(parameters, ...options);
      await window.update();
    },
  };
}

function destinationsOf(turn: IteratorResult<Pick<Exchange, 'destinations'>>): readonly Rank[] {
  if (turn.done === true) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'schedule', 'one that never ends', {
      text: 'one that has ended',
    });
  }
  exchange(turn.value, 'what schedule gives');
  return turn.value.destinations;
}
