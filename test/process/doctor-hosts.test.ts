// `gradlink doctor` over two hosts that are network namespaces: through a remote shell, and as the command of a job.
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, it } from 'vitest';

import { makeHosts, netns, noHosts, removeHosts } from '../support/hosts.js';
import { gradlink, Launches, missing } from '../support/launching.js';

const name = `gd${String(process.pid % 100_000)}`;
const reason = noHosts();
let launches: Launches;
let hostfile = '';
let addresses: readonly string[] = [];

beforeEach(() => {
  launches = new Launches();
  if (reason !== undefined) return;
  addresses = makeHosts(name);
  hostfile = join(launches.scratch, 'hosts');
  writeFileSync(hostfile, addresses.map((address) => `${address} slots=1\n`).join(''));
});
afterEach(async () => {
  await launches.remove();
  if (reason === undefined) removeHosts(name);
});

interface Line {
  readonly name: string;
  readonly status: string;
  readonly text: string;
}

function hostLines(json: string): Map<string, Line> {
  const { findings } = JSON.parse(json) as { findings: readonly Line[] };
  return new Map(
    findings.filter((one) => one.name.startsWith('hosts')).map((one) => [one.name, one]),
  );
}

function doctor(
  ...args: readonly string[]
): Promise<{ stdout: string; stderr: string; failed: boolean }> {
  const all = [
    gradlink,
    'doctor',
    '--json',
    '--hostfile',
    hostfile,
    '--remote-shell',
    netns,
    ...args,
  ];
  return new Promise((resolve) => {
    execFile(netns, ['enter', `${name}-a`, process.execPath, ...all], (error, stdout, stderr) => {
      resolve({ stdout, stderr, failed: error !== null });
    });
  });
}

it('sees the hosts of a hostfile, and names who does not reach whom', async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  const [a = '', b = ''] = addresses;
  const whole = await doctor('--require', 'hosts');
  expect(whole.failed).toBe(false);
  const lines = hostLines(whole.stdout);
  expect(lines.get('hosts')?.text).toBe(`2 hosts: ${a}, ${b}`);
  expect(lines.get('hosts:reach')).toMatchObject({ status: 'ok' });
  expect(lines.get('hosts:clock')).toMatchObject({ status: 'ok' });
  execFileSync(netns, ['cut', name]);
  const cut = await doctor('--require', 'hosts');
  expect(cut.failed).toBe(true);
  const { status, text = '' } = hostLines(cut.stdout).get('hosts:reach') ?? {};
  expect(status).toBe('degraded');
  expect(text).toContain(`${a} cannot reach ${b} (`);
  expect(text).toContain(`${b} cannot reach ${a} (`);
});

it.for([
  ['openmpi', 'mpirun.openmpi'],
  ['mpich', 'mpirun.mpich'],
] as const)('compares the hosts of a job, %s, in one voice', async ([mpi, program], { skip }) => {
  const why = reason ?? missing([program]);
  if (why !== undefined) skip(why);
  const args = ['--launcher', 'ssh', '-H', hostfile, '--remote-shell', netns, '-n', '2'];
  const { code, stdout, stderr } = await launches.run(
    [...args, process.execPath, gradlink, 'doctor', '--json', '--require', 'hosts'],
    { before: [netns, 'enter', `${name}-a`], env: { GRADLINK_MPI: mpi } },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = hostLines(stdout);
  expect(lines.get('hosts')?.text).toBe(`2 hosts: ${name}-a, ${name}-b`);
  expect(lines.get('hosts:reach')).toMatchObject({ status: 'ok' });
});
