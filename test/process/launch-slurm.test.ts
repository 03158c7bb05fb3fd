// `gradlink launch --launcher slurm` under a real Slurm of one node, which test/hosts/slurm.sh starts and stops.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import {
  bearers,
  leaksOf,
  Launches,
  marked,
  missing,
  storeProgram,
  type Started,
} from '../support/launching.js';
import { words } from '../support/words.js';

const slurm = new URL('../hosts/slurm.sh', import.meta.url).pathname;
const reason = missing(['srun', 'slurmctld', 'slurmd', 'munged'], true);

let launches: Launches;
let folder = '';
let config = '';
beforeAll(() => {
  launches = new Launches();
  if (reason !== undefined) return;
  folder = join(launches.scratch, 'slurm');
  mkdirSync(folder);
  config = execFileSync(slurm, ['up', folder], { encoding: 'utf8' }).trim();
});
afterAll(async () => {
  const servers = [slurm, 'down', folder] as const;
  if (reason === undefined) execFileSync(servers[0], servers.slice(1));
  const left = ['slurmctld.pid', 'munge/pid'].filter((file) => existsSync(join(folder, file)));
  if (folder !== '') left.push(...readdirSync(folder).filter((file) => /^slurmd.*pid$/.test(file)));
  await launches.remove();
  expect(left).toEqual([]);
});

function slurmTest(title: string, test: () => Promise<void>): void {
  it(title, async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    await test();
  });
}

const launch = (args: readonly string[], env: Record<string, string> = {}): Started =>
  launches.start(['--launcher', 'slurm', ...args], { env: { SLURM_CONF: config, ...env } });

slurmTest('numbers the ranks and passes variables on', async () => {
  const script =
    'echo $SLURM_PROCID $GRADLINK_NUM_WORKERS $GRADLINK_ROLE $GRADLINK_TRANSPORT $COLOR';
  const { code, stdout, stderr } = await launch([
    ...words('-n 3 --tag-output --env'),
    'COLOR=light blue',
    'sh',
    '-c',
    script,
  ]).ended;
  expect({ code, stdout: stdout.trimEnd().split('\n').sort(), stderr }).toEqual({
    code: 0,
    stdout: ['0', '1', '2'].map((each) => `[${each}] ${each} 3 worker mpi light blue`),
    stderr: '',
  });
});

slurmTest('keeps its secret and its variables out of all that it writes', async () => {
  const where = { env: { SLURM_CONF: config } };
  const { code, leaks, shown } = await leaksOf(launches, ['--launcher', 'slurm'], where);
  expect({ code, leaks }).toEqual({ code: 0, leaks: [] });
  expect(shown).toContain('GRADLINK_NUM_WORKERS');
});

slurmTest('takes the plugin that goes with the MPI', async () => {
  const script = 'echo ${PMIX_RANK:+pmix}${PMI_FD:+pmi2}';
  const run = (mpi: string) => launch(['-n', '2', 'sh', '-c', script], { GRADLINK_MPI: mpi }).ended;
  expect((await run('openmpi')).stdout).toBe('pmix\npmix\n');
  expect((await run('mpich')).stdout).toBe('pmi2\npmi2\n');
});

slurmTest('runs workers and servers of a store', async () => {
  const { code, stdout, stderr } = await launch([
    ...['-n', '2', '-s', '2', process.execPath, storeProgram(launches.scratch)],
  ]).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.trimEnd().split('\n').sort()).toEqual(['0 3 2', '1 3 2']);
});

slurmTest('takes a hostfile, and arguments for srun', async () => {
  const hostfile = join(launches.scratch, 'hosts');
  writeFileSync(hostfile, `${hostname().replace(/\..*/, '')} slots=2\n`);
  const { code, stdout } = await launch([
    ...words('-n 2 -H'),
    hostfile,
    ...words('--launcher-arg=--job-name=named sh -c'),
    'echo $SLURM_JOB_NAME',
  ]).ended;
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'named\nnamed\n' });
});

slurmTest('ends everything at Ctrl-C, the allocation too', async () => {
  const mark = launches.mark('there');
  const { child, ended } = launch(
    ['-n', '2', 'sh', '-c', `sleep 600 & setsid sleep 600 & touch ${mark}$SLURM_PROCID; sleep 600`],
    { LAUNCH_TEST: mark },
  );
  await marked(mark, 2);
  child.kill('SIGINT');
  expect((await ended).code).toBe(130);
  expect(bearers(`LAUNCH_TEST=${mark}`)).toEqual([]);
  const queue = execFileSync('squeue', ['--noheader', '--states=running,pending'], {
    encoding: 'utf8',
    env: { ...process.env, SLURM_CONF: config },
  });
  expect(queue).toBe('');
});
