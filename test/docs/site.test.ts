// The site that `npm run docs` makes, in a browser: every guide, and of the reference the longest names.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { beforeAll, describe, expect, it } from 'vitest';

import { noBrowser, pagesOfTests } from '../support/browser.js';
import { folderOfAllTests } from '../support/folders.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const root = join(import.meta.dirname, '..', '..');

let site = '';
folderOfAllTests((made) => (site = made));
beforeAll(async () => {
  if (noBrowser !== undefined) return;
  const typedoc = join(root, 'node_modules', '.bin', 'typedoc');
  await promisify(execFile)(typedoc, ['--skipErrorChecking', '--out', site], { cwd: root });
}, 300_000);
const newPage = pagesOfTests();

describe('the site', () => {
  const open = (width: number) => newPage({ bypassCSP: true, viewport: { width, height: 800 } });

  it('scrolls down only, on a phone', async () => {
    const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((file) =>
      /^(?:index|(?:documents|classes|functions)\/.*)\.html$/.test(file),
    );
    expect(pages.length).toBeGreaterThan(100);
    const page = await open(390);
    const wide: string[] = [];
    for (const file of pages) {
      await page.goto(`file://${join(site, file)}`, { waitUntil: 'domcontentloaded' });
      const width = await page.evaluate<number>('document.documentElement.scrollWidth');
      if (width > 390) wide.push(`${file}: ${String(width)}`);
    }
    expect(wide).toEqual([]);
  }, 240_000);

  it('on paper is dark on light, and nothing is to be scrolled', async () => {
    const page = await open(718);
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    for (const name of ['index', 'documents/Moving_from_Horovod']) {
      await page.goto(`file://${join(site, name)}.html`);
      const [back, words, wide] = await page.evaluate<[string, string, number]>(
        `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
          [...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1).length]`,
      );
      expect([back, words, wide]).toEqual(['rgb(255, 255, 255)', 'rgb(0, 0, 0)', 0]);
    }
  });

  // Its menu's headings and its accordions are typedoc's own.
  it.each(['index', 'documents/Glossary', 'documents/Several_hosts_without_MPI'])(
    '%s breaks no rule of WCAG, light and dark',
    async (name) => {
      for (const [width, colorScheme] of [
        [390, 'light'],
        [1280, 'dark'],
      ] as const) {
        const page = await open(width);
        await page.emulateMedia({ colorScheme });
        await page.goto(`file://${join(site, name)}.html`);
        await page.evaluate(axe);
        const found = await page.evaluate<string[]>(
          `axe.run({ rules: { 'heading-order': { enabled: false } } }).then(({ violations }) =>
            violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 120))))`,
        );
        expect(found).toEqual([]);
        await page.close();
      }
    },
    240_000,
  );
});
