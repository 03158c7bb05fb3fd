import { spawn } from 'node:child_process';

import { describe, expect, it } from 'vitest';

import { judgeCores, runningOn, type CoreFigures } from '../../lib/check/cores.js';
import { allowedCores, bindToCores } from '../../lib/launch/cores.js';
import { until } from '../support/launching.js';

const rounds = 15;

interface Core {
  readonly rate?: number;
  readonly share?: number;
  readonly freeRounds?: number;
  readonly kind?: string;
}

/** A look at cores that run steadily, but for so many rounds in which they were free. */
function look(...cores: readonly Core[]): CoreFigures[] {
  return cores.map(({ rate = 1e9, share = 1, freeRounds = 0, kind = '' }, core) => ({
    core,
    kind,
    stepsPerSecond: Array.from({ length: rounds }, () => rate),
    shares: Array.from({ length: rounds }, (_, round) => (round < freeRounds ? 1 : share)),
  }));
}

const levelOf = (...looks: readonly CoreFigures[][]) => judgeCores(looks).verdict.level;

describe('cores', () => {
  it('are good where all are free and alike', () => {
    const { verdict, values } = judgeCores([look({}, { rate: 0.9e9 }, { share: 0.95 })]);
    expect(verdict.level).toBe('good');
    expect(verdict.likelyCause).toBeNull();
    expect(values).toEqual({ cores: 3, leastFreeShare: 0.95, slowestOfMedian: 0.9 });
  });

  it('name the one on which something runs, and what', () => {
    const { verdict } = judgeCores([look({}, { share: 0.5 }, {})], (core) => `stress ${core}`);
    expect(verdict.level).toBe('poor');
    expect(verdict.text).toMatch(/^cpu:1 free for 50 %/);
    expect(verdict.likelyCause).toContain('stress 1');
  });

  it.each([
    ['at the limit of a busy one', 0.8, 0, 'good'],
    ['below it', 0.79, 0, 'poor'],
    ['with as many free rounds as one that is bound has', 0.5, 2, 'poor'],
    ['with more', 0.5, 3, 'fair'],
  ] as const)('a core %s', (_, share, freeRounds, level) => {
    expect(levelOf(look({}, {}, { share, freeRounds }))).toBe(level);
  });

  it('are not named where the others are no freer: the machine is busy', () => {
    expect(levelOf(look({ share: 0.5 }, { share: 0.89 }))).toBe('fair');
    expect(levelOf(look({ share: 0.5 }, { share: 0.9 }))).toBe('poor');
  });

  it('are named where they stand out in each look, not in one', () => {
    const busy = look({}, { share: 0.5 });
    const moved = look({ share: 0.5 }, {});
    expect(levelOf(busy, busy, busy)).toBe('poor');
    expect(levelOf(busy, moved, busy)).toBe('fair');
    expect(levelOf(busy, busy, look({}, {}))).toBe('good');
  });

  it('name the slow one of a kind: cores of another kind are slower by design', () => {
    const { verdict } = judgeCores([look({}, {}, { rate: 0.6e9 })]);
    expect(verdict).toMatchObject({ level: 'poor', text: 'cpu:2 at 60 % of the others' });
    expect(levelOf(look({}, {}, { rate: 0.7e9 }))).toBe('good');
    expect(levelOf(look({}, {}, { rate: 0.6e9, kind: 'efficient' }))).toBe('good');
  });

  it('of one there is nothing to compare', () => {
    expect(levelOf(look({ share: 0.5 }))).toBe('fair');
    expect(levelOf(look({}))).toBe('good');
  });

  it('know what runs on them', async () => {
    const core = allowedCores().at(-1)!;
    const child = spawn(process.execPath, ['-e', 'for(;;);'], { stdio: 'ignore' });
    try {
      bindToCores(child.pid!, [core]);
      await until(() =>
        runningOn(core)
          .split(', ')
          .includes(`node (pid ${String(child.pid)})`),
      );
    } finally {
      child.kill('SIGKILL');
    }
  });
});
