import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

import { Command } from 'commander';
import { describe, expect, it, vi } from 'vitest';

import { settled } from '../../lib/cli/launch/guesses.js';
import type { TypedOptions } from '../../lib/cli/launch/launch-table.js';
import { countsOneHost, insteadOf, sameAs } from '../../lib/cli/launch/other-launchers.js';
import { ownSpelling } from '../../lib/cli/launch/spelling.js';
import { UsageError } from '../../lib/cli/usage-error.js';
import { allowedCores } from '../../lib/launch/cores.js';
import { parseHostList } from '../../lib/launch/hosts.js';
import { grantedCores } from '../../lib/results/container-limits.js';
import { gradlink } from '../support/cli.js';

vi.mock('../../lib/launch/cores.js', { spy: true });
vi.mock('../../lib/results/container-limits.js', { spy: true });

const program = new Command();
program
  .command('launch')
  .option('-n, --num-workers <count>')
  .option('-H, --hostfile <file>')
  .option('--env <x>')
  .option('--launcher <name>')
  .option('--tag');

describe("other launchers' spelling", () => {
  it.each([
    ['launch -np 4 node app.js', 'launch -n 4 node app.js'],
    ['launch --num-proc 4 node app.js', 'launch -n 4 node app.js'],
    ['launch --env -np --tag -np 4 node -np 2', 'launch --env -np --tag -n 4 node -np 2'],
    ['launch -n 2 node -np 2', 'launch -n 2 node -np 2'],
    ['launch -- -np', 'launch -- -np'],
    ['launch --nproc-per-node 4 node app.js', 'launch -n 4 node app.js'],
    ['launch --nproc_per_node=4 --tag node', 'launch -n 4 --tag node'],
    ['launch --nproc-per-node cpu node', 'launch -n auto node'],
    ['launch --launcher=local --nproc-per-node 2 x', 'launch --launcher=local -n 2 x'],
    ['launch --num-proc=4 node', 'launch -n 4 node'],
    ['launch -host a:1 --hosts=b:1 node', 'launch -H a:1 -H b:1 node'],
    ['launch -x A=1 -n4 --env=B=2 node -x C', 'launch --env A=1 -n4 --env=B=2 node -x C'],
    ['measure -np 4', 'measure -np 4'],
  ])('%s', (argv, own) => {
    expect(ownSpelling(argv.split(' '), program).join(' ')).toBe(own);
  });

  const others = {
    torchrun:
      '--standalone --nnodes --node-rank --node_rank --rdzv-backend --rdzv_endpoint --rdzv-id --master-addr --master-port --redirects -r --tee -t --log-dir -m --module --no-python',
    horovodrun:
      '-p --check-build -cb --network-interfaces --start-timeout --min-np --max-np --slots-per-host --host-discovery-script --config-file --timeline-filename --verbose --reset-limit',
    mpirun:
      '--map-by --oversubscribe --allow-run-as-root --mca -npernode -ppn -wdir --output-filename -genv',
    srun: '--nodes -N --ntasks-per-node --partition --gpus-per-task',
  };
  it.each(
    Object.entries(others).flatMap(([tool, names]) => names.split(' ').map((name) => [tool, name])),
  )("%s's %s is answered with what takes its place", async (_, name) => {
    const { code, stderr } = await gradlink(['launch', name, '-n', '2', 'node', 'app.js']);
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`^gradlink: unknown option '${name}'\\. [-\\w].*\\.\n`));
  });

  it('is told by the guide as it is', () => {
    const guide = readFileSync(new URL('../../docs/launch.md', import.meta.url), 'utf8');
    const table = /\n## Options of other launchers\n(.*?)\n## /s.exec(guide)?.[1] ?? '';
    const cells = table.split('\n').map((line) => line.split(' | ')[0]!);
    const names = cells.flatMap((cell) => [...cell.matchAll(/`--?([\w-]{2,}\b|(?<=-)\w)/g)]);
    expect(names.length).toBeGreaterThan(30);
    const unknown = names
      .map(([, name = '']) => name)
      .filter((name) => {
        const key = name.length === 1 ? `-${name}` : name;
        return sameAs(key) === undefined && insteadOf(key) === undefined && !countsOneHost(key);
      });
    // The first stands for all of its kind, the other is ours by the same name.
    expect(unknown).toEqual(['rdzv', 'max-restarts']);
  });

  it('an option before the command that nobody has is none of it', async () => {
    const { code, stderr } = await gradlink(['launch', '--num-worker', '2', 'node', 'app.js']);
    expect(code).toBe(2);
    expect(stderr).toContain('mean --num-workers?');
  });

  it.each([
    '--nproc-per-node 2 -H a:2,b:2 node',
    '-H a:2,b:2 --nproc_per_node=2 node',
    '--launcher ssh --nproc-per-node 2 -H a:2 node',
  ])("torchrun's count of one host is not taken for that of several: %s", async (argv) => {
    const { code, stderr } = await gradlink(['launch', ...argv.split(' ')]);
    expect({ code, named: stderr.includes('-n COUNT') }).toEqual({ code: 2, named: true });
  });

  it('names hosts on the command line', () => {
    expect(parseHostList('node1:4,node2:2,node3')).toEqual([
      { name: 'node1', slots: 4 },
      { name: 'node2', slots: 2 },
      { name: 'node3' },
    ]);
    expect(() => parseHostList('node1:four')).toThrow(/HOST:SLOTS/);
  });

  it('reaches the launcher', async () => {
    const dry = ['launch', '-np', '3', '--launcher', 'mpi', '-H', 'a:2,b:1', '--dry-run', 'node'];
    const { stdout, stderr, code } = await gradlink(dry);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/a,a,b|a:2,b:1/);
  });
});

describe('what is left open', () => {
  const guess = (options: Partial<TypedOptions>, env = {}) => {
    const notes: string[] = [];
    const typed = { numWorkers: 2, ...options } as unknown as TypedOptions;
    const { launcher, numWorkers, hostfile } = settled(typed, env, (text) => notes.push(text));
    return { launcher, numWorkers, hostfile, notes: notes.length };
  };

  it.each([
    [{}, 'local', undefined],
    [{ hostfile: 'a:1,b:1' }, 'ssh', 'a:1,b:1'],
    [{ hostfile: '/no/such/file' }, 'ssh', '/no/such/file'],
    [{ hostfile: 'a:1,b:1', launcher: 'mpi' }, 'mpi', 'a:1,b:1'],
    // Nobody else needs to be reached.
    [{ hostfile: 'localhost:4' }, 'local', undefined],
    [{ hostfile: 'localhost:4,a:1' }, 'ssh', 'localhost:4,a:1'],
    [{ hostfile: 'localhost:4', remoteShell: 'ssh -p 22' }, 'ssh', 'localhost:4'],
  ])('%j: the launcher %s', (options, launcher, hostfile) => {
    const guessed = 'hostfile' in options && !('launcher' in options);
    expect(guess(options)).toEqual({ launcher, hostfile, numWorkers: 2, notes: guessed ? 1 : 0 });
  });

  it('counts the slots of this host', () => {
    expect(() => guess({ hostfile: 'localhost:1' })).toThrow(UsageError);
  });

  it('counts cores and GPUs for -n auto and -n gpu', () => {
    const auto = (granted: number | null, seen = 4) => {
      vi.mocked(allowedCores).mockReturnValue(Array.from({ length: seen }, (_, core) => core));
      vi.mocked(grantedCores).mockReturnValue(granted);
      const { numWorkers, notes } = guess({ numWorkers: 'auto' });
      expect(notes).toBe(1);
      return numWorkers;
    };
    // Of a core that is granted in part there is no worker, but there is one at the least.
    expect([null, 9, 2.9, 0.5].map((granted) => auto(granted))).toEqual([4, 4, 2, 1]);
    expect(auto(null, 0)).toBe(availableParallelism());
    const env = { CUDA_VISIBLE_DEVICES: '0,1,2,3' };
    expect(guess({ numWorkers: 'gpu' }, env).numWorkers).toBe(4);
    expect(guess({ numWorkers: 'gpu', gpusPerWorker: 3 }, env).numWorkers).toBe(1);
    expect(() => guess({ numWorkers: 'gpu' }, { CUDA_VISIBLE_DEVICES: '' })).toThrow(UsageError);
    expect(() => guess({ numWorkers: 'auto', hostfile: 'a:1' })).toThrow(UsageError);
    expect(() => guess({ numWorkers: 'gpu', launcher: 'slurm' }, env)).toThrow(UsageError);
  });
});
