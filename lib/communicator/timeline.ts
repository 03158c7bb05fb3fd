// Timelines of communicators: where they are written.
import { GradlinkError } from '../errors.js';
import { Timeline, timelineFile } from '../files/timeline.js';
import { nonEmpty } from '../validate.js';
import { CallTrace } from './call-trace.js';
import type { Executor } from './executor.js';

/** Names a file for the timeline of {@link Communicator.world}. */
export const timelineVariable = 'GRADLINK_TIMELINE';

/** Notes the operations from now on. */
export function startTimeline(executor: Executor, file: unknown): void {
  const path = nonEmpty(file, 'file');
  if (executor.trace !== undefined) {
    const message = 'startTimeline: one is being written: call stopTimeline() first';
    throw new GradlinkError('ERR_UNSUPPORTED', message, { op: 'startTimeline', usable: true });
  }
  const { rank, holdsAll, size } = executor;
  const timeline = holdsAll
    ? new Timeline(path, { label: `group of ${size}` })
    : new Timeline(timelineFile(path, rank), { rank });
  executor.trace = new CallTrace(timeline, true);
}
