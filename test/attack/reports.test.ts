// Reports cut at every byte, and with bytes altered: each means what it did, or is refused by one sentence that says so.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';

import type { Counts } from './support/campaign.js';
import { campaign, campaignTimeout } from './support/campaign.js';
import type { Random } from './support/random.js';
import { compareRuns } from '../../lib/compare/index.js';
import { chartsOf } from '../../lib/report/charts/index.js';
import { comparisonFormats, renderComparison } from '../../lib/report/index.js';
import { toPage } from '../../lib/report/page/html.js';
import { renderReport, reportFormats, toJson } from '../../lib/report/render.js';
import { parseReport } from '../../lib/results/read-report.js';
import type { Report } from '../../lib/results/result.js';
import { matrixRun, storesRun, sweepRun, trainRun } from '../support/page-runs.js';
import { collectiveCase, report, sharedStoreCase, storeCase, waived } from '../support/reports.js';

const name = 'run.json';
const originals = [
  report('measure', [storeCase()]),
  report('measure', [sharedStoreCase(), waived()]),
  report('collectives', [collectiveCase(), collectiveCase({ wrong: 3 })]),
];
/** Of several cases each, for values that are exchanged. */
const larger = [sweepRun(), matrixRun(), storesRun(), trainRun()];

/** What it says in one sentence; undefined where the text was taken. Anything else is a fault. */
function refusalOf(text: string): { readonly taken: Report } | { readonly refusal: string } {
  try {
    return { taken: parseReport(text, name) };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    expect(error).toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    const start = `${name} is not a report that --format json wrote, `;
    expect(error.message.slice(0, start.length)).toBe(start);
    expect(error.message).not.toMatch(/[\u0000-\u001f\u007f-\u009f]|undefined|\[object/);
    expect(error.message.length).toBeLessThan(500);
    return { refusal: error.message };
  }
}

/** The page has one script of its own, and names it by its digest: nothing that a report says is another. */
function expectNoStrangeScript(page: string): void {
  const scripts = [...page.matchAll(/<script[^>]*>([^]*?)<\/script>/gi)].map(([, body]) => body!);
  expect(page.match(/<script/gi)?.length ?? 0).toBe(scripts.length);
  const [policy] = /script-src 'sha256-[^']+'/.exec(page) ?? [''];
  for (const body of scripts) {
    const digest = createHash('sha256').update(body).digest('base64');
    expect(policy).toBe(`script-src 'sha256-${digest}'`);
  }
  expect(scripts.length).toBeLessThanOrEqual(1);
}

/** Everything that is made of a report is made of it, and tells of no defect of ours. */
async function use(taken: Report, base: Report): Promise<void> {
  for (const format of reportFormats) renderReport(taken, format);
  expectNoStrangeScript(await toPage([{ label: 'a', report: taken }]));
  chartsOf([{ label: 'a', report: taken }]);
  for (const pair of [
    [taken, base],
    [base, taken],
  ] as const) {
    const [first, second] = pair.map((one, at) => ({ name: String(at), reports: [one] }));
    const options = { tolerance: 0.05, confidence: 0.95, ignoreEnvironment: true };
    const comparison = compareRuns(first!, second!, options);
    for (const format of comparisonFormats) renderComparison(comparison, format);
  }
}

interface Tally {
  altered: number;
  refused: number;
  same: number;
  other: number;
}

async function judge(text: string, base: Report, tally: Tally, shown: boolean): Promise<void> {
  tally.altered += 1;
  const judged = refusalOf(text);
  if ('refusal' in judged) {
    tally.refused += 1;
    return;
  }
  if (toJson(judged.taken) === toJson(base)) tally.same += 1;
  else tally.other += 1;
  // A report has no checksum: people edit it. What fits the schema is shown as it stands.
  if (shown) await use(judged.taken, base);
}

const empty = (): Tally => ({ altered: 0, refused: 0, same: 0, other: 0 });
const counts = (tally: Tally): Counts => ({ ...tally });

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
const strange: readonly Json[] = [
  null,
  true,
  -1,
  0,
  1e308,
  5e-324,
  2 ** 53,
  '',
  '__proto__',
  '<script>alert(1)</script>',
  '\u001b[2J\u0000',
  'x'.repeat(10_000),
  [],
  {},
  [[]],
  { constructor: { name: { toString: 1 } } },
  { length: 1e9 },
];

/** Every place in a value, as its owner and key. */
function places(value: Json, found: [Record<string, Json>, string][] = []): typeof found {
  if (typeof value !== 'object' || value === null) return found;
  const owner = value as Record<string, Json>;
  for (const key of Object.keys(owner)) {
    found.push([owner, key]);
    places(owner[key]!, found);
  }
  return found;
}

/** A text with one to three values replaced, taken away or doubled; keys that mean something to JavaScript among them. */
function exchanged(random: Random, base: Report): string {
  const value = JSON.parse(toJson(base)) as Json;
  for (let left = 1 + random.int(3); left > 0; left -= 1) {
    const [owner, key] = random.pick(places(value));
    const what = random.int(4);
    if (what === 0) Reflect.deleteProperty(owner, key);
    else if (what === 1) owner[key] = structuredClone(random.pick(strange));
    else if (what === 2 && !Array.isArray(owner)) {
      const name = random.pick(['__proto__', 'constructor', 'toString', 'schemaVersion', 'length']);
      Object.defineProperty(owner, name, {
        value: structuredClone(random.pick(strange)),
        enumerable: true,
        writable: true,
        configurable: true,
      });
    } else {
      const [from, name] = random.pick(places(value));
      owner[key] = structuredClone(from[name]!);
    }
  }
  return JSON.stringify(value);
}

describe('a report', () => {
  it('is refused when it is cut, at each byte', { timeout: campaignTimeout }, async () => {
    const sums = await campaign('reports, cut', originals.length, async (_, round) => {
      const base = originals[round % originals.length]!;
      const bytes = Buffer.from(toJson(base));
      const tally = empty();
      for (let length = 0; length < bytes.length; length += 1) {
        await judge(bytes.toString('utf8', 0, length), base, tally, false);
      }
      // The newline at the end is no part of it.
      expect(tally).toMatchObject({ same: bytes.at(-1) === 10 ? 1 : 0, other: 0 });
      return counts(tally);
    });
    expect(sums['altered']).toBeGreaterThan(0);
  });

  it('with an altered byte is refused or shown', { timeout: campaignTimeout }, async () => {
    const sums = await campaign('reports, bytes', originals.length, async (random, round) => {
      const base = originals[round % originals.length]!;
      const bytes = Buffer.from(toJson(base));
      const tally = empty();
      for (let at = 0; at < bytes.length; at += 1) {
        const altered = Buffer.from(bytes);
        altered[at] = random.chance(0.5) ? bytes[at]! ^ (1 << random.int(8)) : random.int(256);
        await judge(altered.toString('utf8'), base, tally, random.chance(0.02));
      }
      return counts(tally);
    });
    expect(sums['refused']).toBeGreaterThan(0);
    expect(sums['other']).toBeGreaterThan(0);
  });

  it('with exchanged values is refused or shown', { timeout: campaignTimeout }, async () => {
    const sums = await campaign('reports, values', 60, async (random) => {
      const base = random.pick([...originals, ...larger]);
      const tally = empty();
      for (let left = 20; left > 0; left -= 1) {
        await judge(exchanged(random, base), base, tally, random.chance(0.2));
      }
      return counts(tally);
    });
    expect(sums['refused']).toBeGreaterThan(0);
  });
});
