// What a timeline, or the profile of a server, holds.
import { readFileSync } from 'node:fs';

export interface Event {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args: { bytes: number; waitedMs?: number; name?: string } & OfServer;
}
interface OfServer {
  readonly key?: string;
  readonly worker?: number;
  readonly pushes?: number;
}

export const eventsIn = (file: string): Event[] =>
  (JSON.parse(readFileSync(file, 'utf8')) as { traceEvents: Event[] }).traceEvents;

/** Those that last. */
export const spansIn = (file: string): Event[] => eventsIn(file).filter(({ ph }) => ph === 'X');
