// The rules of the prose find what they are for, and let plain sentences pass.
import { describe, expect, it } from 'vitest';

const script = new URL('../../scripts/prose-rules.mjs', import.meta.url).href;
const { checks } = (await import(script)) as {
  checks: Readonly<Record<string, (sentence: string) => string | undefined>>;
};

const long = Array.from({ length: 31 }, () => 'word').join(' ');

describe('a rule of the prose', () => {
  it.each([
    ['sentence-length', `${long}.`],
    ['clause-subject', 'What it throws is the error of its units.'],
    ['clause-subject', 'Who waits for a late rank through others waits longer.'],
    ['turns', 'The program needs it not.'],
    ['turns', 'An option that there is not ends the command.'],
  ])('%s finds "%s"', (rule, sentence) => {
    expect(checks[rule]?.(sentence)).toBeTypeOf('string');
  });

  it.each([
    ['sentence-length', `These count: ${long.slice(0, 100)} (${long}).`],
    ['clause-subject', 'What would more workers give?'],
    ['clause-subject', 'The error names the rank.'],
    ['turns', 'The program does not need it.'],
  ])('%s lets "%s" pass', (rule, sentence) => {
    expect(checks[rule]?.(sentence)).toBeUndefined();
  });
});
