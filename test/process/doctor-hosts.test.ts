// `gradlink doctor` over two hosts that are network namespaces: through a remote shell, and as the command of a job.
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, it } from 'vitest';

import { makeHosts, netns, noHosts, removeHosts } from '../support/hosts.js';
import { gradlink, Launches, missing } from '../support/launching.js';
import { words } from '../support/words.js';

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
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
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
    execFile(
      netns,
      ['enter', `${name}-a`, process.execPath, ...all],
      { env: { ...process.env, ...env } },
      (error, stdout, stderr) => {
        resolve({ stdout, stderr, failed: error !== null });
      },
    );
  });
}

it('sees the hosts of a hostfile, and names who does not reach whom', async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  const [a = '', b = ''] = addresses;
  const whole = await doctor(['--require', 'hosts']);
  expect(whole.failed).toBe(false);
  const lines = hostLines(whole.stdout);
  expect(lines.get('hosts')?.text).toBe(`2 hosts: ${a}, ${b}`);
  expect(lines.get('hosts:reach')).toMatchObject({ status: 'ok' });
  expect(lines.get('hosts:clock')).toMatchObject({ status: 'ok' });
  execFileSync(netns, ['cut', name]);
  const cut = await doctor(['--require', 'hosts']);
  expect(cut.failed).toBe(true);
  const { status, text = '' } = hostLines(cut.stdout).get('hosts:reach') ?? {};
  expect(status).toBe('degraded');
  expect(text).toContain(`${a} cannot reach ${b} (`);
  expect(text).toContain(`${b} cannot reach ${a} (`);
});

it('has them call one another on the network and the ports that were chosen', async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  const [a = '', b = ''] = addresses;
  // Each host has another network too, and so another name for itself than the hostfile's.
  for (const [side, address] of [
    ['a', '10.78.0.1'],
    ['b', '10.78.0.2'],
  ] as const) {
    const link = `${name}-to${side === 'a' ? 'b' : 'a'}`;
    const on = ['-n', `${name}-${side}`, 'address', 'add', `${address}/24`, 'dev', link];
    execFileSync('ip', on);
  }
  const chosen = { GRADLINK_INTERFACE: '10.78.0.0/24', GRADLINK_PORTS: '41000-41001' };
  const whole = await doctor(['--require', 'hosts'], chosen);
  expect(hostLines(whole.stdout).get('hosts:reach')).toMatchObject({ status: 'ok' });
  // What cannot be called says where it was called.
  execFileSync('ip', ['-n', `${name}-b`, 'route', 'add', 'unreachable', '10.78.0.1/32']);
  const cut = await doctor([], chosen);
  expect(hostLines(cut.stdout).get('hosts:reach')?.text).toMatch(
    /10\.78\.0\.\d: .*\(TCP port 4100[01]\)/,
  );
  execFileSync('ip', [
    '-n',
    `${name}-b`,
    ...words('address delete 10.78.0.2/24 dev'),
    `${name}-toa`,
  ]);
  const { text = '' } = hostLines((await doctor([], chosen)).stdout).get('hosts') ?? {};
  expect(text).toContain(b);
  expect(text).toContain('GRADLINK_INTERFACE');
  expect(text).not.toContain(`${a} (`);
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
