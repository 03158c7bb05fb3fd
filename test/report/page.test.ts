// The page of `gradlink report`, opened in a browser.
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { BrowserContextOptions, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { toPage } from '../../lib/report/page/html.js';
import { toSvg } from '../../lib/report/page/svg.js';
import { chartsOf } from '../../lib/report/charts/index.js';
import { pagesOfTests } from '../support/browser.js';
import { folderOfAllTests } from '../support/folders.js';
import { matrixRun, storesRun, sweepRun, trainRun } from '../support/page-runs.js';

const pictures = new URL('../../build/test-results/', import.meta.url).pathname;
const runs = [
  { label: 'before', report: sweepRun() },
  { label: 'after <b>&"', report: sweepRun(7e9) },
  { label: 'links', report: matrixRun() },
  { label: 'stores', report: storesRun() },
  { label: 'training', report: trainRun() },
];

let folder = '';
let file = '';
folderOfAllTests((made) => (folder = made));
beforeAll(async () => {
  file = join(folder, 'report.html');
  writeFileSync(file, await toPage(runs));
  mkdirSync(pictures, { recursive: true });
});

const newPage = pagesOfTests();

interface Opened {
  readonly page: Page;
  readonly requests: readonly string[];
  readonly complaints: readonly string[];
}

async function open(path: string, options: BrowserContextOptions): Promise<Opened> {
  const page = await newPage(options);
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`file://${path}`);
  return { page, requests, complaints };
}

/** What runs in the page: it knows a document, Node does not. */
const checks = readFileSync(new URL('../support/page-checks.js', import.meta.url), 'utf8');

function ask<T>(page: Page, question: string): Promise<T> {
  return page.evaluate<T>(`${checks}\n${question}`);
}

describe('the page in a browser', () => {
  it.each([
    { name: 'desktop-light', width: 1280, colorScheme: 'light', back: 'rgb(255, 255, 255)' },
    { name: 'desktop-dark', width: 1280, colorScheme: 'dark', back: 'rgb(20, 24, 31)' },
    { name: 'phone-dark', width: 375, colorScheme: 'dark', back: 'rgb(20, 24, 31)' },
    { name: 'phone-light', width: 360, colorScheme: 'light', back: 'rgb(255, 255, 255)' },
  ] as const)(
    '$name: asks for nothing, says nothing, cuts nothing',
    async ({ name, width, colorScheme, back }) => {
      const { page, requests, complaints } = await open(file, {
        viewport: { width, height: 800 },
        colorScheme,
      });
      expect(requests).toEqual([`file://${file}`]);
      expect(complaints).toEqual([]);
      expect(await ask(page, 'pageChecks.cutTexts()')).toEqual([]);
      expect(await ask(page, 'pageChecks.overlappingLabels()')).toEqual([]);
      expect(await ask(page, 'pageChecks.brokenFigures()')).toEqual([]);
      expect(await ask(page, 'getComputedStyle(document.body).backgroundColor')).toBe(back);
      // Axis labels take the colour of the page's words.
      const [labels, words] = await ask<string[]>(page, 'pageChecks.colours()');
      expect(labels).toBe(words);
      const picture = join(pictures, `report-${name}.png`);
      await page.screenshot({ path: picture, fullPage: true });
      expect(statSync(picture).size).toBeGreaterThan(20_000);
      await page.context().close();
    },
  );

  it('on paper is dark on light, with every table open and nothing cut', async () => {
    const { page } = await open(file, {
      viewport: { width: 718, height: 1000 },
      colorScheme: 'dark',
    });
    await page.emulateMedia({ media: 'print' });
    expect(await ask(page, 'getComputedStyle(document.body).color')).toBe('rgb(0, 0, 0)');
    expect(await ask(page, 'pageChecks.cutTexts()')).toEqual([]);
    const rows = await page.locator('tr').count();
    expect(rows).toBeGreaterThan(50);
    expect(await ask(page, 'pageChecks.hiddenRows()')).toBe(0);
    expect(await page.locator('.figure').count()).toBeGreaterThan(50);
    expect(await ask(page, 'pageChecks.brokenFigures()')).toEqual([]);
    await page.context().close();
  });

  it('sorts by what cells mean at a click, and back at the next', async () => {
    const { page, complaints } = await open(file, { viewport: { width: 1280, height: 800 } });
    await page.locator('#cases summary').first().click();
    const table = page.locator('#cases table').first();
    const title = table.locator('th', { hasText: 'median' });
    const column = await title.evaluate((cell) => Number(Reflect.get(cell, 'cellIndex')));
    const medians = async (): Promise<number[]> => {
      const cells = table.locator(`td:nth-child(${String(column + 1)})[data-value]`);
      const values = await cells.evaluateAll((all) =>
        all.map((cell) => Number(cell.getAttribute('data-value'))),
      );
      return values;
    };
    const ascending = (await medians()).toSorted((a, b) => a - b);
    await title.locator('button').click();
    expect(await medians()).toEqual(ascending);
    await title.locator('button').click();
    expect(await medians()).toEqual(ascending.toReversed());
    expect(await title.getAttribute('aria-sort')).toBe('descending');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('begins with the answer: of each group what, how fast, of what limit, verdict', async () => {
    const { page } = await open(file, { viewport: { width: 1280, height: 800 } });
    const rows = await page.locator('#answer tbody tr').allInnerTexts();
    expect(rows[0]).toMatch(
      /before\s+all_reduce, out-of-place, 16 MiB\s+14.98 GB\/s\s+133 %\s+good: above/,
    );
    const links = rows.find((row) => row.startsWith('links'));
    expect(links).toMatch(
      /144\.00 GB\/s\s+25\.00 to 144\.00 GB\/s, 12 ways\s+91 %, 16 % from gpu:0 to gpu:\d\s+poor: far\b/,
    );
    expect(await page.locator('section').first().getAttribute('id')).toBe('answer');
    await page.context().close();
  });

  it('shows a name as it was typed, whatever is in it', async () => {
    const { page } = await open(file, { viewport: { width: 1280, height: 800 } });
    expect(await page.locator('.run h3').allTextContents()).toEqual(runs.map(({ label }) => label));
    expect(await page.locator('b').count()).toBe(0);
    await page.context().close();
  });

  it('a picture of its own follows the reader light and dark', async () => {
    const picture = join(folder, 'charts.svg');
    writeFileSync(picture, await toSvg(chartsOf(runs)));
    for (const [colorScheme, fill] of [
      ['light', 'rgb(255, 255, 255)'],
      ['dark', 'rgb(20, 24, 31)'],
    ] as const) {
      const { page, requests, complaints } = await open(picture, { colorScheme });
      expect({ requests, complaints }).toEqual({ requests: [`file://${picture}`], complaints: [] });
      const back = await ask(page, "getComputedStyle(document.querySelector('rect.back')).fill");
      expect(back).toBe(fill);
      await page.context().close();
    }
  });
});
