// Every kind of page as axe-core sees it, which knows the rules of WCAG.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { toPage } from '../../lib/report/page/html.js';
import { pagesOfTests } from '../support/browser.js';
import { folderOfAllTests } from '../support/folders.js';
import {
  aboveRun,
  checkRun,
  ddpRun,
  latencyRun,
  matrixRun,
  neighborsRun,
  storesRun,
  sweepRun,
  trainRun,
} from '../support/page-runs.js';
import { collectiveCase, report, storeCase, waived } from '../support/reports.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const kinds = [
  { kind: 'sweep', runs: [sweepRun()] },
  { kind: 'two sweeps', runs: [sweepRun(), sweepRun(7e9)] },
  { kind: 'figures above their limit', runs: [aboveRun()] },
  { kind: 'neighbours', runs: [neighborsRun()] },
  { kind: 'buckets', runs: [ddpRun()] },
  { kind: 'matrix', runs: [matrixRun()] },
  { kind: 'latency', runs: [latencyRun()] },
  { kind: 'stores', runs: [storesRun()] },
  { kind: 'training', runs: [trainRun()] },
  { kind: 'one case', runs: [report('measure', [storeCase()])] },
  { kind: 'two checks', runs: [checkRun(), checkRun(0.04)] },
  { kind: 'failures', runs: [report('collectives', [collectiveCase({ wrong: 3 }), waived()])] },
];
const looks = [1280, 390].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
);

let folder = '';
folderOfAllTests((made) => (folder = made));
const newPage = pagesOfTests();

const checks = readFileSync(new URL('../support/page-checks.js', import.meta.url), 'utf8');

/** What axe finds, a line each. */
const audit = `axe.run().then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 120))))`;

describe('the page of a reader who does not see it, or not well', () => {
  it.each(kinds)(
    'of $kind breaks no rule, light and dark',
    async ({ kind, runs }) => {
      const file = join(folder, `${kind}.html`);
      const labelled = runs.map((run, index) => ({ label: `run ${String(index)}`, report: run }));
      writeFileSync(file, await toPage(labelled));
      // The page's policy lets no script run but its own.
      const page = await newPage({ bypassCSP: true });
      await page.goto(`file://${file}`);
      await page.evaluate(
        "document.querySelectorAll('details').forEach((one) => (one.open = true))",
      );
      await page.evaluate(axe);
      for (const { width, colorScheme } of looks) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        expect(await page.evaluate<string[]>(`${checks}\npageChecks.cutTexts()`)).toEqual([]);
        expect(await page.evaluate<string[]>(audit)).toEqual([]);
      }
      await page.close();
    },
    240_000,
  );
});
