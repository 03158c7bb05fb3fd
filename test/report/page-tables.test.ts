// The answer, the words and the table of all cases: what the page says of a run.
import { describe, expect, it } from 'vitest';

import { caseTable } from '../../lib/report/page/case-table.js';
import { whole } from '../../lib/report/page/cells.js';
import { headline } from '../../lib/report/page/headline.js';
import { toPage } from '../../lib/report/page/html.js';
import { policy } from '../../lib/report/page/sorting.js';
import { remarks } from '../../lib/report/page/words.js';
import type { Report, Verdict } from '../../lib/results/result.js';
import {
  aboveRun,
  checkRun,
  latencyRun,
  matrixRun,
  neighborsRun,
  trainRun,
} from '../support/page-runs.js';
import { report, storeCase } from '../support/reports.js';

const labelled = (run: Report) => [{ label: 'run', report: run }];
const tableOf = (run: Report) => caseTable(labelled(run));
const titlesOf = (run: Report): string[] => tableOf(run).columns.map(({ title }) => title);
const answerOf = (run: Report): string[] =>
  headline(labelled(run)).rows.map((row) => row.map(({ text }) => text).join(' | '));

describe('the page of a check', () => {
  it('has its answer in no other words', async () => {
    const page = await toPage(labelled(checkRun()));
    expect(page.match(/lines as they should be/g)).toHaveLength(1);
    expect(page).not.toMatch(/<section id="words">/);
    expect(page).not.toMatch(/new \/ base/);
  });

  it('beside another has the ratio of what both measured', async () => {
    const runs = [checkRun(), checkRun(0.04)].map((run, at) => ({
      label: String(at),
      report: run,
    }));
    const text = (await toPage(runs)).replace(/<[^>]*>/g, ' ');
    expect(text).toMatch(/new \/ base/);
    expect(text).toMatch(/memory\s+20\.00 ms\s+40\.00 ms\s+2\.00/);
  });
});

describe('the answer', () => {
  it('names the placement, the size and what the verdict means', () => {
    expect(answerOf(aboveRun())).toEqual([
      'broadcast, 32 MiB | 24.00 GB/s | 120 % | good: above its limit',
    ]);
  });

  it('of links names the slowest, where there is one', () => {
    expect(answerOf(matrixRun())[0]).toMatch(
      /, 12 ways \| 91 %, 16 % from gpu:0 to gpu:\d \| poor: far below/,
    );
    const even = matrixRun();
    const cases = even.cases.filter(({ parameters }) => parameters.from !== 'gpu:0');
    expect(answerOf({ ...even, cases })[0]).toMatch(/144\.00 GB\/s, 9 ways \| 91 % \| good/);
  });

  it.each([
    ['fixed cost', 'too small to judge', /not judged: .*fixed cost/],
    ['above limit', 'faster than its limit says', /not judged: .*limit/],
    ['comparison', 'not judged', /not judged: .*comparison/],
    // Of a report from before there were reasons.
    [undefined, 'not judged', /not judged$/],
  ] as const)(
    'says why there is no level by its reason, whatever its text: %s',
    (reason, cell, kind) => {
      const run = matrixRun();
      const verdict: Verdict = {
        level: 'none',
        ...(reason === undefined ? {} : { reason }),
        text: '38 % of the limit; at this size the fixed cost decides',
        likelyCause: null,
      };
      const cases = run.cases.map((one) => ({ ...one, verdict }));
      const [first] = answerOf({ ...run, cases });
      expect(first?.split(' | ').at(-1)).toBe(cell);
      expect(
        remarks({ cases: [...cases, ...aboveRun().cases] })[1]?.text.replace(/ \(.*/, ''),
      ).toMatch(kind);
    },
  );
});

describe('the table of all cases', () => {
  it('of one case says its parameters once, above', () => {
    const { constants, columns } = tableOf(report('measure', [storeCase()]));
    expect(constants).toEqual(['kvstore', 'store device', 'network resnet', '2 devices']);
    expect(columns.map(({ title }) => title)).toEqual([
      'median',
      'min',
      'p95',
      'bandwidth',
      'of limit',
      'verdict',
    ]);
  });

  it('has the columns of its tool', () => {
    expect(titlesOf(trainRun())).toEqual([
      'mode',
      'workers',
      'rate',
      'median',
      'min',
      'p95',
      'communication',
      'not hidden',
    ]);
    expect(titlesOf(neighborsRun())).toContain('of all_reduce');
    expect(titlesOf(latencyRun())).toEqual(['from', 'to', 'median', 'min', 'p95']);
  });

  it('names whose a parameter is that the others lack', () => {
    const { constants } = tableOf(neighborsRun());
    expect(constants).toContain('topology exp2 (neighbor_all_reduce)');
    expect(constants).toContain('not dynamic (neighbor_all_reduce)');
    expect(constants).toContain('not shared');
  });
});

it('the policy of the page names what has no default', () => {
  expect(policy).toMatch(/^(?=.*base-uri 'none';)(?=.*form-action 'none';).*default-src 'none';/);
});

it('a number keeps its unit, and a text of digits alone is looked at once', () => {
  expect(whole('12.5 GB/s of 93 %')).toMatch(/^<span[^>]*>12\.5 GB\/s<\/span> of <span/);
  const digits = '1'.repeat(1_000_000);
  expect(whole(digits)).toBe(digits);
});

it('a figure above its limit has its reason among what wants attention, of many cases too', () => {
  const wanting = remarks(aboveRun()).filter(({ wants }) => wants);
  expect(wanting).toHaveLength(1);
  expect(wanting[0]?.text).toMatch(/^broadcast, 32 MiB: 120 % .*cause: .*\bplain loop\b/);
});
