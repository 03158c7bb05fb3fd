// Every command line that the documentation shows is one that the program takes.
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';

import { createProgram } from '../../lib/cli/main.js';
import { ownSpelling } from '../../lib/cli/launch/spelling.js';
import { guides, shownLines } from '../support/guides.js';

/** Parses all, runs nothing. */
async function withoutActions(argv: readonly string[]): Promise<Command> {
  const program = await createProgram(
    { ...process, stdout: process.stdout, stderr: process.stderr, env: {} },
    argv,
    () => undefined,
  );
  const still = (command: Command): void => {
    command.configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
    if (command.commands.length === 0) command.action(() => undefined);
    command.commands.forEach(still);
  };
  still(program);
  return program;
}

/** What the program says against a line; undefined when it takes it. */
async function objection(argv: readonly string[]): Promise<string | undefined> {
  const program = await withoutActions(argv);
  try {
    await program.parseAsync([...ownSpelling(argv, program)], { from: 'user' });
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code === 'commander.helpDisplayed' ||
      (error as { code?: string }).code === 'commander.help'
      ? undefined
      : (error as Error).message;
  }
}

const lines = guides.flatMap(shownLines);

describe('command lines of the documentation', () => {
  it('are found', () => {
    expect(lines.length).toBeGreaterThan(30);
    expect(new Set(lines.map(({ guide }) => guide)).size).toBeGreaterThan(7);
  });

  it.each(lines)('$guide: $line', async ({ argv }) => {
    const found = await objection(argv);
    // `gradlink launch --timeout` in a sentence names an option; it is no whole command.
    const names = argv.length === 2 && /argument missing|required option/.test(found ?? '');
    if (!names) expect(found).toBeUndefined();
    if (argv[0] !== 'launch') return;
    // What is launched may be a command of this package too.
    const inner = argv.findIndex((word, i) => i > 0 && /^(gradlink|bench\/\w+\.js)$/.test(word));
    if (inner === -1) return;
    const script = /^bench\/(\w+)\.js$/.exec(argv[inner]!)?.[1];
    const rest = argv.slice(inner + 1);
    expect(await objection(script === undefined ? rest : [script, ...rest])).toBeUndefined();
  });

  it('would not pass with an option or value that there is not', async () => {
    expect(await objection(['measure', '--nothing'])).toContain('unknown option');
    expect(await objection(['collectives', 'none'])).toContain("'none'");
    expect(await objection(['predict', '--link', '1'])).toContain('MICROSECONDS');
  });
});
