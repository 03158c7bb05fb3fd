// Before the GPU tests: builds the stand-ins, or makes sure that there is a GPU. After them: nothing may be left on the
// stand-ins.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { native } from '../../../lib/native/load.js';
import { buildFakes, leaksFolder, onRealGpus } from './fakes.js';

const root = join(import.meta.dirname, '../../..');
/** vitest kills a worker that has not ended by then. */
const patienceMs = 10_000;
const leaks = leaksFolder(process.pid);

export default function setup(): undefined | (() => Promise<void>) {
  if (onRealGpus) {
    // Throws where there is no driver or no GPU: then these tests fail, they are not skipped.
    native().gpuCount();
    return undefined;
  }
  buildFakes();
  rmSync(leaks, { recursive: true, force: true });
  mkdirSync(leaks, { recursive: true });
  return reportLeaks;
}

/** Of the files `name.pid.running`, which a worker renames to `name.pid.ended` before its libraries say what is left. */
function workers(): number[] {
  return readdirSync(leaks)
    .filter((file) => /\.(running|ended)$/.test(file))
    .map((file) => Number(file.split('.').at(-2)));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Fails the run, and the line that scripts/test-summary.mjs counts, when a fake says that something was left. */
async function reportLeaks(): Promise<void> {
  // The last workers end while this runs.
  const deadline = Date.now() + patienceMs;
  while (workers().some(isAlive) && Date.now() < deadline) await pause(20);
  const left = readdirSync(leaks).flatMap((file) => {
    if (file.endsWith('.ended')) return [];
    if (file.endsWith('.running')) return [`${file}: its process did not end by itself`];
    const lines = readFileSync(join(leaks, file), 'utf8').split('\n').filter(Boolean);
    return lines.map((line) => `${file}: ${line}`);
  });
  rmSync(leaks, { recursive: true });
  const name = 'GPU tests leave nothing on the fakes';
  const outcome = `${left.length === 0 ? 'pass' : 'fail'} ${name}\n`;
  writeFileSync(join(root, 'build/test-results/gpu-leaks.txt'), outcome);
  if (left.length === 0) return;
  console.error(`${name}: they left\n  ${left.join('\n  ')}`);
  process.exitCode = 1;
}
