// A browser without a window, for tests of pages.
import { existsSync } from 'node:fs';

import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach } from 'vitest';

const programs = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = programs.find((file) => existsSync(file));

/** Why there is no browser; undefined where there is one. */
export const noBrowser =
  executablePath === undefined ? 'no Chromium (Debian: apt-get install chromium)' : undefined;

/** A browser for the tests of a block, which are skipped where there is none; what it gives opens a page. */
export function pagesOfTests(): (options: BrowserContextOptions) => Promise<Page> {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (executablePath === undefined) return;
    // Containers may have a /dev/shm too small for a page's picture.
    const args = ['--no-sandbox', '--disable-dev-shm-usage'];
    browser = await chromium.launch({ executablePath, args });
  });
  beforeEach((context) => {
    if (noBrowser !== undefined) context.skip(noBrowser);
  });
  afterAll(() => browser?.close());
  return (options) => browser!.newPage(options);
}
