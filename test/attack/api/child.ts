// One round, in a process of its own, so that a crash is one round: so many calls from a seed, judged. What was called
// last stands in a file, and the figures are the last line of the output.
import { openSync, writeSync } from 'node:fs';

import { GradlinkError, KVStore } from '../../../lib/index.js';
import { Random } from '../support/random.js';
import { LocalCollectives } from './collectives.js';
import { plainFamily } from './call.js';
import type { Call, Family } from './call.js';
import { OwnError, defectOf } from './defects.js';
import { nextFigure } from './figures.js';
import { nextGraph } from './graphs.js';
import { nextNumber } from './numbers.js';
import { Ranks } from './ranks.js';
import { Stores } from './stores.js';

const setting = (name: string): string => process.env[`GRADLINK_API_${name}`] ?? '';
const random = new Random(Number(setting('SEED')));
const calls = Number(setting('CALLS'));
const log = openSync(setting('LOG'), 'w');
/** Only a net for a hang; right calls take milliseconds. */
const patienceMs = 60_000;
const defective = 0.4;
const lastLength = 200;

const figures = { calls: 0, succeeded: 0, refused: 0 };
const faults: string[] = [];

/** One place in the file, written over: this must cost nothing beside the calls. */
function noteLast(what: string): void {
  writeSync(log, what.slice(0, lastLength).padEnd(lastLength), 0);
}

function fault(text: string): void {
  faults.push(text);
  if (faults.length >= 20) finish();
}

function finish(): never {
  writeSync(1, `\n${JSON.stringify({ ...figures, faults })}\n`);
  process.exit(0);
}

process.on('unhandledRejection', (reason) => {
  fault(`unhandled rejection: ${String(reason)}`);
});
process.on('uncaughtException', (error) => {
  fault(`uncaught: ${String(error)}`);
});

/** Why an error is not as docs/errors.md has it; undefined where it is. */
function untyped(error: unknown): string | undefined {
  if (error instanceof OwnError) return undefined;
  if (!(error instanceof Error)) return `no Error: ${String(error)}`;
  // The reason of a signal that was aborted before.
  if (error.name === 'AbortError') return undefined;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && code.startsWith('ERR_')) return undefined;
  return `untyped ${error.stack ?? String(error)}`;
}

async function run(call: Call, args: readonly unknown[], what: string): Promise<unknown> {
  const timer = setTimeout(() => {
    fault(`${what}: hangs`);
    finish();
  }, patienceMs);
  try {
    return await call.run(...args);
  } finally {
    clearTimeout(timer);
  }
}

async function makeRight(family: Family, call: Call, what: string): Promise<void> {
  try {
    const result = await run(call, call.args, what);
    if (call.refusedWith === undefined) {
      call.check?.(result);
      figures.succeeded += 1;
    } else {
      fault(`${what}: expected ${call.refusedWith.join(' or ')}`);
    }
  } catch (error) {
    const { code } = error as { code?: string };
    if (call.refusedWith?.includes(code ?? '') === true) figures.refused += 1;
    else
      fault(`${what}: right, but ${error instanceof Error ? (error.stack ?? '') : String(error)}`);
    if (error instanceof GradlinkError && !error.usable) await family.renew();
  }
}

async function makeWrong(family: Family, call: Call, what: string): Promise<void> {
  const defect = defectOf(random, call.args);
  const all = `${what} with ${defect.what}`;
  noteLast(all);
  try {
    await run(call, defect.args, all);
    // Harmless, or a right call of another kind: what it changed nobody knows.
    figures.succeeded += 1;
    await family.renew();
  } catch (error) {
    figures.refused += 1;
    const why = untyped(error);
    if (why !== undefined) fault(`${all}: ${why}`);
    if (error instanceof GradlinkError && !error.usable) await family.renew();
  }
}

const ofOneProcess = async (): Promise<[number, Family][]> => [
  [5, new LocalCollectives()],
  [2, await Ranks.open()],
  [3, await Stores.local()],
  [2, plainFamily(nextGraph)],
  [3, plainFamily(nextNumber)],
  [3, plainFamily(nextFigure)],
];
const ofAWorker = async (): Promise<[number, Family][]> => [
  [1, await Stores.open(() => KVStore.create('dist_sync'))],
];

const weighted = await (setting('KIND') === 'dist' ? ofAWorker() : ofOneProcess());
const families = weighted.flatMap(([weight, family]) => new Array<Family>(weight).fill(family));
for (let i = 0; i < calls; i += 1) {
  const family = random.pick(families);
  const wrong = random.chance(defective);
  const call = family.next(random, wrong);
  const what = `call ${String(i)}, ${call.name}`;
  figures.calls += 1;
  noteLast(what);
  if (wrong) await makeWrong(family, call, what);
  else await makeRight(family, call, what);
}
for (const [, family] of weighted) await family.close();
finish();
