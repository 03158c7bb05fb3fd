// A browser without a window, for tests of pages.
import { existsSync } from 'node:fs';

import { chromium, type Browser } from 'playwright-core';

const programs = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Why there is no browser; undefined where there is one. */
export const noBrowser = programs.some((file) => existsSync(file))
  ? undefined
  : 'no Chromium (Debian: apt-get install chromium)';

export async function startBrowser(): Promise<Browser> {
  const executablePath = programs.find((file) => existsSync(file));
  if (executablePath === undefined) throw new Error(noBrowser);
  // Containers may have a /dev/shm too small for a page's picture.
  return await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
}
