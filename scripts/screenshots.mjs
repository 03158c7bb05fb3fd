#!/usr/bin/env node
// Measures a sweep and makes the pictures of a report in docs/images of it: on a quiet machine, after `npm run build`.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

import { root } from './native.mjs';

const images = join(root, 'docs', 'images');
const folder = mkdtempSync(join(tmpdir(), 'gradlink-screenshots-'));
const gradlink = (...args) => {
  execFileSync(process.execPath, [join(root, 'bench/gradlink.js'), ...args], { stdio: 'inherit' });
};

const run = join(folder, 'run.json');
gradlink('collectives', 'all_reduce', ...'-n 4 -b 1K -e 4M -f 2 --output'.split(' '), run);
gradlink('report', run, '--chart', 'bandwidth-all-reduce', '-o', join(images, 'bandwidth.svg'));
const page = join(folder, 'report.html');
gradlink('report', run, '-o', page);
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
try {
  for (const [name, width, height, colorScheme] of [
    ['report', 1000, 1200, 'light'],
    ['report-phone', 390, 800, 'dark'],
  ]) {
    const tab = await browser.newPage({ viewport: { width, height }, colorScheme });
    await tab.goto(`file://${page}`);
    // The window of a desk shows the chart below the words; that of a phone the chart alone.
    if (name === 'report-phone') {
      await tab.locator('#bandwidth-all-reduce').evaluate((section) => section.scrollIntoView());
    }
    await tab.screenshot({ path: join(images, `${name}.png`) });
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
