import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { gradlink } from '../support/cli.js';

describe('gradlink', () => {
  it('prints the version of the package', async () => {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    const { version } = JSON.parse(text) as { version: string };
    expect(await gradlink(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('prints its help with examples, on standard output when asked for', async () => {
    const { code, stdout, stderr } = await gradlink(['--help']);
    expect(code).toBe(0);
    expect(stderr).toBe('');
    for (const command of ['measure', 'collectives', 'models', 'launch']) {
      expect(stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'));
    }
    expect(stdout).toContain('$ gradlink measure');
  });

  it('prints its help on standard error, with 2, when nothing was said', async () => {
    const { code, stdout, stderr } = await gradlink([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: gradlink');
  });

  it.each(['measure', 'collectives', 'models', 'launch'])(
    'explains %s with examples',
    async (name) => {
      const { code, stdout } = await gradlink([name, '--help']);
      expect(code).toBe(0);
      expect(stdout).toContain(`Usage: gradlink ${name}`);
      expect(stdout).toContain(`$ gradlink ${name}`);
    },
  );

  it.each([
    [['nonsense'], "unknown command 'nonsense'", 'gradlink --help'],
    [['measure', '--nonsense'], "unknown option '--nonsense'", 'gradlink measure --help'],
    [['measure', 'extra'], 'too many arguments', 'gradlink measure --help'],
    [['collectives'], "missing required argument 'collective'", 'gradlink collectives --help'],
  ])('says what is wrong with %j and where help is', async (argv, message, help) => {
    const { code, stdout, stderr } = await gradlink(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`gradlink: ${message}`);
    expect(stderr).toContain(`Run ${help}`);
  });
});
