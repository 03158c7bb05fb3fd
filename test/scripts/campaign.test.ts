// The campaigns of test/attack say how a round of theirs comes again.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

/** Runs a campaign whose rounds each draw a number, and the fifth of which fails; what it said, printed or thrown. */
async function said(variables: Readonly<Record<string, string>>, drawn: number[]): Promise<string> {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  vi.resetModules();
  const { campaign } = await import('../attack/support/campaign.js');
  const printed = vi.spyOn(console, 'log').mockReturnValue();
  try {
    await campaign('probe', 5, (random, round) => {
      drawn.push(random.int(2 ** 30));
      if (round === 4) throw new Error('failed');
      return {};
    });
    return printed.mock.calls.join('\n');
  } catch (error) {
    return (error as Error).message;
  }
}

const names = ['SEED', 'ROUND', 'MINUTES'].map((name) => `GRADLINK_ATTACK_${name}`);
beforeEach(() => {
  for (const name of names) vi.stubEnv(name, '');
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

it('a round that fails comes again with the variables that it says', async () => {
  const drawn: number[] = [];
  const message = await said({ GRADLINK_ATTACK_SEED: '7' }, drawn);
  const variables = [...message.matchAll(/\b(GRADLINK_\w+)=(\d+)/g)].map(([, name, value]) => [
    name,
    value,
  ]);
  expect(variables).toEqual([
    ['GRADLINK_ATTACK_SEED', '7'],
    ['GRADLINK_ATTACK_ROUND', '4'],
  ]);
  const again: number[] = [];
  expect(await said(Object.fromEntries(variables) as Record<string, string>, again)).toBe(message);
  expect(drawn).toHaveLength(5);
  expect(again).toEqual(drawn.slice(4));
});

it('figures tell the seed, which alone says what is drawn', async () => {
  const drawn: number[] = [];
  for (const seed of ['7', '8']) {
    const variables = { GRADLINK_ATTACK_SEED: seed, GRADLINK_ATTACK_ROUND: '3' };
    expect(await said(variables, drawn)).toContain(`(seed ${seed},`);
  }
  expect(new Set(drawn).size).toBe(2);
});
