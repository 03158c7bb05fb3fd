#!/usr/bin/env node
// Makes the pictures of reports in docs/images: of a sweep, and of a check of four hosts, one of which has a fault. On a
// quiet machine, as root, after `npm run build`.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

import { root } from './native.mjs';

const images = join(root, 'docs', 'images');
const netns = join(root, 'test/hosts/netns.sh');
const program = join(root, 'bench/gradlink.js');
const folder = mkdtempSync(join(tmpdir(), 'gradlink-screenshots-'));
const run = (command, ...args) => execFileSync(command, args, { stdio: 'inherit' });

const sweep = join(folder, 'sweep.json');
run(program, 'collectives', 'all_reduce', ...'-n 4 -b 1K -e 4M -f 2 --output'.split(' '), sweep);
run(
  program,
  'report',
  sweep,
  '--chart',
  'bandwidth-all-reduce',
  '-o',
  join(images, 'bandwidth.svg'),
);

/** What the last of four hosts sends is held back. */
const check = join(folder, 'check.json');
const addresses = execFileSync(netns, ['up', 'node', '4'], { encoding: 'utf8' }).trim().split('\n');
try {
  for (const side of 'abc') run(netns, 'shape', 'node', 'd', side, 'rate', '50mbit');
  const asked = ['-H', addresses.join(','), '--remote-shell', netns, '--parts', 'doctor'];
  run(netns, 'enter', 'node-a', program, 'check', ...asked, '--output', check);
} catch (error) {
  // Of a part that is bad.
  if (error.status !== 1) throw error;
} finally {
  run(netns, 'down', 'node');
}

const page = join(folder, 'check.html');
run(program, 'report', check, '-o', page);
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
try {
  const tab = await browser.newPage({ viewport: { width: 760, height: 930 } });
  await tab.goto(`file://${page}`);
  // As far as the map of bandwidth, however many lines stand before it.
  const height = await tab.evaluate(() => {
    const headings = [...document.querySelectorAll('h2')];
    const at = headings.findIndex(({ textContent }) => textContent.startsWith('bandwidth'));
    return headings[at + 1].getBoundingClientRect().top - 16;
  });
  const clip = { x: 0, y: 0, width: 760, height };
  const png = (await tab.screenshot({ fullPage: true, clip })).toString('base64');
  // A third of the bytes, which every installation of the package has.
  const webp = await tab.evaluate(async (data) => {
    const picture = new Image();
    picture.src = `data:image/png;base64,${data}`;
    await picture.decode();
    const canvas = document.createElement('canvas');
    Object.assign(canvas, { width: picture.width, height: picture.height });
    canvas.getContext('2d').drawImage(picture, 0, 0);
    return canvas.toDataURL('image/webp', 0.8).split(',')[1];
  }, png);
  writeFileSync(join(images, 'check.webp'), Buffer.from(webp, 'base64'));
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
