// A campaign: rounds of one kind of attack, each drawn from seed and number, so that a round that failed comes again.
//
//   GRADLINK_ATTACK_SEED      what the rounds are drawn from; 1 when absent
//   GRADLINK_ATTACK_MINUTES   how long each campaign goes on; as many rounds as its file says when absent
//   GRADLINK_ATTACK_ROUND     this round alone
import { randomOf } from './random.js';
import type { Random } from './random.js';

/** What is counted over the rounds, by name: calls, kills, altered files. */
export type Counts = Readonly<Record<string, number>>;

function numberIn(name: string): number | undefined {
  const text = process.env[name] ?? '';
  if (text === '') return undefined;
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) {
    throw new Error(`${name}: expected a number that is not negative, got ${text}`);
  }
  return value;
}

const seed = numberIn('GRADLINK_ATTACK_SEED') ?? 1;
const minutes = numberIn('GRADLINK_ATTACK_MINUTES');
const only = numberIn('GRADLINK_ATTACK_ROUND');

/** For the test that runs a campaign: what a short run may take, and as long again as it was asked to go on. */
export const campaignTimeout = 600_000 + (minutes ?? 0) * 2 * 60_000;

function* roundsOf(short: number): Generator<number> {
  if (only !== undefined) {
    yield only;
    return;
  }
  const end = performance.now() + (minutes ?? 0) * 60_000;
  const more = (round: number) => (minutes === undefined ? round < short : performance.now() < end);
  for (let round = 0; more(round); round += 1) yield round;
}

/**
 * Runs `attack` round by round, prints the figures, and returns what its rounds counted together. `short` is the number
 * of rounds of a run without GRADLINK_ATTACK_MINUTES.
 */
export async function campaign(
  name: string,
  short: number,
  attack: (random: Random, round: number) => Promise<Counts> | Counts,
): Promise<Counts> {
  const began = performance.now();
  const sums: Record<string, number> = { rounds: 0 };
  for (const round of roundsOf(short)) {
    try {
      const counts = await attack(randomOf(seed, round), round);
      for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count;
    } catch (error) {
      const again = `GRADLINK_ATTACK_SEED=${String(seed)} GRADLINK_ATTACK_ROUND=${String(round)}`;
      throw new Error(`${name}, again with ${again}: ${String(error)}`, { cause: error });
    }
    sums['rounds'] = (sums['rounds'] ?? 0) + 1;
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  const figures = Object.entries(sums).map(([what, count]) => `${what} ${String(count)}`);
  console.log(`attack ${name}: ${figures.join(', ')} (seed ${String(seed)}, ${seconds} s)`);
  return sums;
}
