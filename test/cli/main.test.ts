import { readFileSync } from 'node:fs';

import { Command } from 'commander';
import { describe, expect, it } from 'vitest';

import { withCounts, type OwnOptions } from '../../lib/cli/collectives/collectives-options.js';
import { commands } from '../../lib/cli/commands.js';
import { UsageError } from '../../lib/cli/usage-error.js';
import { GradlinkError } from '../../lib/errors.js';
import { gradlink } from '../support/cli.js';

describe('gradlink', () => {
  it.each(['-v', '-V', '--version'])('prints the version of the package for %s', async (option) => {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    const { version } = JSON.parse(text) as { version: string };
    // And loads no command for it.
    const table = { probe: () => Promise.reject(new Error('loaded')) };
    const caught = await gradlink([option], { table });
    expect(caught).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
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

  it('starts no server by hand', async () => {
    const { code, stderr } = await gradlink(['serve']);
    expect(code).toBe(2);
    expect(stderr).toContain('gradlink launch -s');
  });

  it('loads each command under the name that it registers', async () => {
    for (const [name, load] of Object.entries(commands)) {
      const program = new Command().enablePositionalOptions();
      (await load())(program, process, () => undefined, []);
      expect(program.commands.map((command) => command.name())).toEqual([name]);
    }
  });

  it('explains every command with examples', async () => {
    const { stdout: help } = await gradlink(['--help']);
    const listed = /Commands:\n([\s\S]*?)\n\n/.exec(help)?.[1] ?? '';
    const names = [...listed.matchAll(/^ {2}([a-z0-9]\S*)/gm)].map(([, name]) => name!);
    expect(names.length).toBeGreaterThan(8);
    for (const name of names.filter((one) => one !== 'help')) {
      const { code, stdout } = await gradlink([name, '--help']);
      expect(code, name).toBe(0);
      expect(stdout).toContain(`Usage: gradlink ${name}`);
      expect(stdout, `an example of ${name}`).toMatch(new RegExp(`^ *\\$ gradlink .*${name}`, 'm'));
    }
  });

  it.each([
    [['nonsense'], "command 'nonsense'", 'gradlink --help'],
    [['collectives', 'nonsense'], "unknown collective 'nonsense'", 'gradlink collectives --help'],
    [['models', 'nonsense'], "unknown network 'nonsense'", 'gradlink models --help'],
    [['measure', '--nonsense'], "option '--nonsense'", 'gradlink measure --help'],
    [['measure', 'extra'], 'many arguments', 'gradlink measure --help'],
    [['collectives'], "argument 'collective'", 'gradlink collectives --help'],
  ])('says what is wrong with %j and where help is', async (argv, message, help) => {
    const { code, stdout, stderr } = await gradlink(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^gradlink: .*${message}`));
    expect(stderr).toContain(`Run ${help}`);
  });
});

/** What each letter means, whatever command has it; where commands differ in words, all of these mean the same. */
const letters: Readonly<Record<string, readonly string[]>> = {
  '-h': ['--help'],
  '-v': ['--version'],
  '-o': ['--output'],
  // Processes, of which each is a rank.
  '-n': ['--ranks', '--num-workers'],
  '-s': ['--num-servers'],
  '-H': ['--hostfile'],
  '-j': ['--jobs'],
};

/** Commands that stand in for another tool and have its letters. Those that it lacks mean what they mean elsewhere. */
const toolLetters: Readonly<Record<string, string>> = {
  // nccl-tests: -o is the operation there, and -n the iterations (ranks where there are no GPUs).
  collectives: 'n b e i f r w m N c o d T a I K C S J g t G R z u p y x D V M',
  // OSU: -i is the iterations there; sizes as in collectives.
  pairs: 'b e f i w W c T',
  // nvbandwidth.
  p2p: 'l t p b i m s d',
};

describe('a short option', () => {
  it('means the same in all commands', async () => {
    const found: string[] = [];
    for (const [name, load] of Object.entries(commands)) {
      const program = new Command().enablePositionalOptions();
      (await load())(program, process, () => undefined, []);
      const [command] = program.commands as [Command];
      const own = (toolLetters[name] ?? '').split(' ').map((letter) => `-${letter}`);
      const options = [command, ...command.commands].flatMap((one) => one.options);
      for (const { short, long } of options) {
        if (short === undefined || own.includes(short)) continue;
        if (letters[short]?.includes(long ?? '') !== true) found.push(`${name} ${short}, ${long}`);
      }
      // Whoever writes a report says where with one letter.
      const output = options.find(({ long }) => long === '--output');
      if (output !== undefined && !own.includes('-o')) expect(output.short, name).toBe('-o');
    }
    expect(found).toEqual([]);
  });
});

describe('-n of collectives', () => {
  it.each([
    [{ n: 8 }, { ranks: 8 }],
    [{ ranks: 8 }, { ranks: 8 }],
    // nccl-tests' iterations, which have no such bound.
    [
      { n: 5000, ngpus: 8 },
      { ngpus: 8, iters: 5000 },
    ],
    [
      { n: 100, nthreads: 8 },
      { nthreads: 8, iters: 100 },
    ],
    [
      { n: 100, gpus: [0, 2] },
      { gpus: [0, 2], iters: 100 },
    ],
  ])('is ranks, or iterations on GPUs: %j', (typed, counts) => {
    expect(withCounts(typed as unknown as OwnOptions, false)).toEqual(counts);
  });

  it('is given once', () => {
    for (const typed of [
      { n: 2, ranks: 2 },
      { n: 3, ngpus: 2 },
    ]) {
      expect(() => withCounts(typed as unknown as OwnOptions, true)).toThrow(UsageError);
    }
  });
});

describe('a failure', () => {
  it('says below its message where cause and remedy are', async () => {
    const failing = new GradlinkError('ERR_TIMEOUT', 'rank 1 did not come');
    const table = {
      probe: () =>
        Promise.resolve((program: Command) => {
          program.command('probe').action(() => {
            throw failing;
          });
        }),
    };
    const { code, stdout, stderr } = await gradlink(['probe'], { table });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(`gradlink: rank 1 did not come (ERR_TIMEOUT)\nSee ${failing.help}\n`);
  });
});
