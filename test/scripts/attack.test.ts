// A campaign's attacks come again with their seed.
// @module-tag full
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { expect, it } from 'vitest';

const script = join(import.meta.dirname, '../../scripts/attack.mjs');

/** The figures of one round of each campaign on reports, without their times. */
function figuresOf(seed: number): string[] {
  const args = [script, '--only', 'reports', '--seed', String(seed)];
  const env = { ...process.env, GRADLINK_ATTACK_ROUND: '0', GRADLINK_ATTACK_SEED: '' };
  const printed = execFileSync(process.execPath, args, { env, encoding: 'utf8' });
  return [...printed.matchAll(/attack (.*) \(seed (\d+), .* s\)/g)].map(([, figures, told]) => {
    expect(told).toBe(String(seed));
    return figures ?? '';
  });
}

it('--seed alone says what is tried', () => {
  const first = figuresOf(7);
  expect(first.length).toBeGreaterThan(1);
  expect(figuresOf(7)).toEqual(first);
  expect(figuresOf(8)).not.toEqual(first);
});
