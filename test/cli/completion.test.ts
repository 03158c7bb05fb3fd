import { execFileSync } from 'node:child_process';

import { describe, expect, it } from 'vitest';

import { gradlink } from '../support/cli.js';

async function script(shell: string): Promise<string> {
  const { code, stdout, stderr } = await gradlink(['completion', shell]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** What bash offers behind the words. */
async function offered(...words: readonly string[]): Promise<string[]> {
  const run = `${await script('bash')}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gradlink; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync('bash', ['-c', run, 'bash', 'gradlink', ...words], { encoding: 'utf8' });
  return out.split('\n').filter((line) => line !== '');
}

describe('completion', () => {
  it('offers commands', async () => {
    expect(await offered('co')).toEqual(['collectives', 'compare', 'completion']);
    expect(await offered('--v')).toEqual(['--version']);
  });

  it('offers options of the command, and values where they are known', async () => {
    expect(await offered('measure', '--kv-s')).toEqual(['--kv-store']);
    expect(await offered('collectives', 'all_')).toEqual(['all_reduce', 'all_gather']);
    expect(await offered('compare', 'a', 'b', '--format', 'j')).toEqual(['json', 'junit']);
    expect(await offered('baseline', 's')).toEqual(['save']);
    expect(await offered('launch', '--launcher', '')).toEqual(['local', 'mpi', 'ssh', 'slurm']);
    expect(await offered('launch', '-n', '')).toEqual(['auto', 'gpu']);
    expect(await offered('help', 'co')).toEqual(['collectives', 'compare', 'completion']);
  });

  it('offers files where a value may be one, and nothing where it is none of the known', async () => {
    expect(await offered('compare', '--output', 'package.js')).toEqual(['package.json']);
    expect(await offered('compare', 'package.js')).toEqual(['package.json']);
    expect(await offered('compare', '--format', 'package.js')).toEqual([]);
  });

  it('is a script that the shell reads', async () => {
    execFileSync('bash', ['-n'], { input: await script('bash') });
    expect(await script('zsh')).toMatch(/^#compdef gradlink\n/);
    const fish = await script('fish');
    expect(fish).toContain("-l format -xa 'text json");
    for (const line of fish.trimEnd().split('\n')) expect(line).toMatch(/^complete -c gradlink /);
  });

  it('knows three shells', async () => {
    const { code, stderr } = await gradlink(['completion', 'csh']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/'csh'.*: bash, zsh\b.*fish/);
  });
});
