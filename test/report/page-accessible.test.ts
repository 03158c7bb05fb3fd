// Every kind of page as axe-core sees it, which knows the rules of WCAG.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { toPage } from '../../lib/report/page/index.js';
import { noBrowser, startBrowser } from '../support/browser.js';
import { matrixRun, storesRun, sweepRun, trainRun } from '../support/page-runs.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const kinds = [
  { kind: 'sweep', runs: [sweepRun()] },
  { kind: 'two sweeps', runs: [sweepRun(), sweepRun(7e9)] },
  { kind: 'matrix', runs: [matrixRun()] },
  { kind: 'stores', runs: [storesRun()] },
  { kind: 'training', runs: [trainRun()] },
];
const looks = [
  { width: 1280, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
] as const;

let folder = '';
let browser: Browser | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gradlink-accessible-'));
  if (noBrowser === undefined) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What axe finds, a line each. */
const audit = `axe.run().then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 120))))`;

describe('the page of a reader who does not see it, or not well', () => {
  beforeEach((context) => {
    if (noBrowser !== undefined) context.skip(noBrowser);
  });

  it.each(kinds)('of $kind breaks no rule, light and dark', async ({ kind, runs }) => {
    if (browser === undefined) throw new Error(noBrowser);
    const file = join(folder, `${kind}.html`);
    const labelled = runs.map((report, index) => ({ label: `run ${String(index)}`, report }));
    writeFileSync(file, await toPage(labelled));
    for (const { width, colorScheme } of looks) {
      // The page's policy lets no script run but its own.
      const page = await browser.newPage({
        viewport: { width, height: 800 },
        colorScheme,
        bypassCSP: true,
      });
      await page.goto(`file://${file}`);
      await page.evaluate(
        "document.querySelectorAll('details').forEach((one) => (one.open = true))",
      );
      await page.evaluate(axe);
      expect(await page.evaluate<string[]>(audit)).toEqual([]);
      await page.close();
    }
  });
});
