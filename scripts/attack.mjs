#!/usr/bin/env node
// Attacks the package at random, from a seed: wrong calls, kills, terminated workers, altered files, strangers.
//
//   npm run test:attack -- [--minutes N] [--seed S] [--only NAME] [--sanitize address|thread]
//
// Without --minutes it is the short run of `npm run test:full`; with it, each campaign goes on for so long.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

function fail(message) {
  console.error(`test:attack: ${message}`);
  process.exit(2);
}

function options() {
  const text = { type: 'string' };
  try {
    const help = { type: 'boolean', short: 'h' };
    return parseArgs({ options: { minutes: text, seed: text, only: text, sanitize: text, help } })
      .values;
  } catch (error) {
    return fail(error.message);
  }
}

/** The value of a numeric option; undefined where it was not given. */
function number(name, given, expected, holds) {
  if (given === undefined) return undefined;
  const value = Number(given);
  if (given.trim() === '' || !holds(value)) fail(`--${name}: expected ${expected}, got ${given}`);
  return value;
}

const { minutes, seed, only, sanitize, help } = options();
const long = number('minutes', minutes, 'a number above 0', (n) => n > 0 && Number.isFinite(n));
const from = number('seed', seed, 'a whole number', Number.isSafeInteger);
if (sanitize !== undefined && !['address', 'thread'].includes(sanitize)) {
  fail(`--sanitize: expected address or thread, got ${sanitize}`);
}
const names = readdirSync(join(root, 'test/attack'))
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => file.replace('.test.ts', ''));
if (only !== undefined && !names.includes(only)) {
  fail(`--only: expected one of ${names.join(', ')}, got ${only}`);
}
if (help) {
  console.log(`npm run test:attack -- [--minutes N] [--seed S] [--only NAME] [--sanitize address|thread]

  --minutes N     so long each campaign; without it the short run of npm run test:full
  --seed S        what the rounds are drawn from; of a long run another each time
  --only NAME     one of ${names.join(', ')}
  --sanitize KIND with the addon under AddressSanitizer or ThreadSanitizer: address, thread`);
  process.exit(0);
}
const chosen = only === undefined ? names : [only];

const env = { ...process.env, GRADLINK_ATTACKS: '1' };
// A long run without a seed is another one each time.
const drawn = from ?? (long === undefined ? 1 : Date.now() % 2 ** 31);
env.GRADLINK_ATTACK_SEED = String(drawn);
if (long !== undefined) env.GRADLINK_ATTACK_MINUTES = String(long);
let project = 'attacks';
if (sanitize !== undefined) {
  const built = spawnSync(
    'bash',
    ['scripts/test-native.sh', sanitize, '--build', '--addon', '--no-tests'],
    {
      cwd: root,
      stdio: 'inherit',
    },
  );
  if (built.status !== 0) process.exit(built.status ?? 1);
  env.GRADLINK_SANITIZER = sanitize;
  project = sanitize;
}
console.log(`seed ${drawn}; ${chosen.join(', ')}`);
const files = chosen.map((name) => `test/attack/${name}.test.ts`);
const vitest = [
  join(root, 'node_modules/vitest/vitest.mjs'),
  'run',
  '--project',
  project,
  ...files,
];
// ThreadSanitizer's fixed memory layout does not fit the widest address randomisation of newer kernels.
const [command, ...args] =
  sanitize === 'thread'
    ? ['setarch', '-R', process.execPath, ...vitest]
    : [process.execPath, ...vitest];
const run = spawnSync(command, args, { cwd: root, env, stdio: 'inherit' });
if (run.error) fail(run.error.message);
process.exit(run.status ?? 1);
