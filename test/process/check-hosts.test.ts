// `gradlink check` on hosts that are network namespaces: with -H each fault is named, and nothing else; a job of Slurm
// drains the bad one.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { parseReport } from '../../lib/results/read-report.js';
import type { Report } from '../../lib/results/result.js';
import { buildFakes, fakesEnvironment } from '../gpu/setup/fakes.js';
import { folderOfEachTest } from '../support/folders.js';
import { blocksOf } from '../support/guides.js';
import {
  blockLink,
  makeHosts,
  netns,
  noHosts,
  removeHosts,
  shapeWay,
  slowLink,
} from '../support/hosts.js';
import { bearers, gradlink, missing, until } from '../support/launching.js';

let folder = '';
folderOfEachTest((made) => (folder = made));
const name = `gc${String(process.pid % 100_000)}`;
const reason = noHosts();
const sides = ['a', 'b', 'c', 'd'] as const;
let addresses: readonly string[] = [];

beforeEach(() => {
  if (reason === undefined) addresses = makeHosts(name, sides.length);
});
afterEach(() => {
  if (reason === undefined) removeHosts(name);
});

const nameOf = (address: unknown): string => sides[addresses.indexOf(String(address))] ?? '';

/** Of a check on the first host. */
async function reportOf(...given: readonly string[]): Promise<Report> {
  const args = ['check', ...given, '--parts', 'doctor', '--json'];
  const child = spawn(netns, ['enter', `${name}-a`, process.execPath, gradlink, ...args]);
  let printed = '';
  child.stdout.on('data', (chunk) => (printed += String(chunk)));
  await new Promise((resolve) => child.once('close', resolve));
  return parseReport(printed, 'check');
}

/** What the check names: hosts, and ways from one to another. */
async function named(extra: readonly string[] = []): Promise<string[]> {
  const hosts = [...addresses, ...extra].join(',');
  const { cases } = await reportOf('-H', hosts, '--remote-shell', netns);
  return cases
    .filter(({ status }) => status === 'error')
    .map(({ name: part, parameters: { host, from, to } }) =>
      part === 'host' ? nameOf(host) || String(host) : `way ${nameOf(from)} ${nameOf(to)}`,
    );
}

const others = (side: string): readonly string[] => sides.filter((one) => one !== side);

describe('a check of four hosts', () => {
  it.for([
    [
      'a host at a tenth',
      () => {
        for (const other of others('d')) slowLink(name, 'd', other, '50mbit');
      },
      ['d'],
    ],
    ['one slow direction', () => shapeWay(name, 'a', 'c', 'rate', '50mbit'), ['way a c']],
    ['lost packets', () => shapeWay(name, 'b', 'c', 'loss', 1), ['way b c']],
    ['a delay', () => shapeWay(name, 'b', 'd', 'delay', 20), ['way b d']],
    [
      'closed ports of a host',
      () => {
        for (const other of others('c')) blockLink(name, 'c', other);
      },
      ['c'],
    ],
    ['closed ports between two', () => blockLink(name, 'b', 'c'), ['way b c', 'way c b']],
  ] as const)('names %s, and nothing else', async ([, make, expected], { skip }) => {
    if (reason !== undefined) skip(reason);
    make();
    expect(await named()).toEqual(expected);
  });

  it('names a host that is not there', async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    expect(await named(['10.77.250.9'])).toEqual(['10.77.250.9']);
  });

  it('names a host that is cut off in the middle, and goes on without it', async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const found = named();
    await until(() => bearers(`MASTER_ADDR=${addresses[0]!}`).length >= sides.length);
    for (const other of others('d')) blockLink(name, 'd', other);
    expect(await found).toEqual(['d']);
  });
});

describe('a check of three hosts with GPUs', () => {
  beforeAll(() => {
    if (reason === undefined) buildFakes();
  });

  /** By which each host is this machine under a name of its own, with two GPUs. The last has a slow one. */
  function remoteShell(): string {
    const file = join(folder, 'shell');
    const variables = {
      ...fakesEnvironment,
      GRADLINK_FAKE_GPUS: '2',
      GRADLINK_FAKE_NVLINK: 'mesh',
    };
    const lines = [
      '#!/bin/sh',
      'host=$1; shift',
      'unset CUDA_VISIBLE_DEVICES',
      ...Object.entries(variables).map(([key, value]) => `export ${key}=${value}`),
      '[ $host = 127.0.0.4 ] && export GRADLINK_FAKE_FAULTS=nccl-slow=1:200',
      'exec unshare --uts sh -c "hostname host-${host##*.}; $*"',
    ];
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    chmodSync(file, 0o755);
    return file;
  }

  it('names the host of a slow GPU on its rail', async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const hosts = ['-H', '127.0.0.2,127.0.0.3,127.0.0.4', '--remote-shell', remoteShell()];
    const { cases } = await reportOf(...hosts);
    const bad = cases.flatMap((one) => (one.status === 'error' ? [one] : []));
    expect(bad.map(({ name: part, parameters: { host } }) => [part, host])).toEqual([
      ['host', '127.0.0.4'],
    ]);
    for (const { reason: told } of bad) expect(told).toMatch(/^all ways: rail gpu:1 takes [^;]*$/);
    const rails = cases.map(({ parameters: { rail } }) => rail).filter(Boolean);
    expect(rails).toEqual(['gpu:0', 'gpu:1'].flatMap((rail) => [rail, rail, rail]));
    const sums = cases.filter(({ parameters: { between } }) => between === 'gpus of hosts');
    expect(sums.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok']);
  });
});

describe('the weekly job of docs/check.md', () => {
  const slurm = new URL('../hosts/slurm.sh', import.meta.url).pathname;
  const programs = ['sbatch', 'slurmctld', 'slurmd', 'munged', 'mpirun.openmpi', 'g++'];
  const noSlurm = reason ?? missing(programs, true);
  let config = '';
  beforeEach(() => {
    if (noSlurm !== undefined) return;
    const args = ['up', join(folder, 'slurm'), `${name}-a`, `${name}-b`];
    config = execFileSync(slurm, args, { encoding: 'utf8' }).trim();
  });
  afterEach(() => {
    if (noSlurm === undefined) execFileSync(slurm, ['down', join(folder, 'slurm')]);
  });

  it('drains a node whose driver crashes', async ({ skip }) => {
    if (noSlurm !== undefined) skip(noSlurm);
    const [driver, bin] = [join(folder, 'libcuda.so'), join(folder, 'bin')];
    execFileSync('g++', ['-shared', '-fPIC', '-x', 'c++', '-o', driver, '-'], {
      input: '__attribute__((constructor)) static void crash() { __builtin_trap(); }',
    });
    mkdirSync(bin);
    writeFileSync(
      join(bin, 'npx'),
      // The hosts call themselves otherwise than Slurm does.
      `#!/bin/sh
shift
if [ "$(hostname)" = ${name}-b ]; then export GRADLINK_CUDA_LIBRARY=${driver}; fi
exec unshare --uts sh -c 'hostname "$(hostname).example.com"; exec "$@"' - \
  ${process.execPath} ${gradlink} "$@" --parts doctor
`,
    );
    chmodSync(join(bin, 'npx'), 0o755);
    writeFileSync(join(folder, 'weekly.sh'), blocksOf('docs/check.md', ['bash'])[0]!);
    const env = {
      ...process.env,
      PATH: `${bin}:${process.env.PATH ?? ''}`,
      SLURM_CONF: config,
      // As of a Slurm that was not told of an MPI.
      SLURM_MPI_TYPE: 'none',
    };
    const onFirst = async (...command: readonly string[]): Promise<string> => {
      const args = ['enter', `${name}-a`, ...command];
      const { stdout } = await promisify(execFile)(netns, args, { cwd: folder, env });
      return stdout;
    };
    await onFirst('sbatch', '--wait', '--nodes=2', '--output=printed.txt', 'weekly.sh');
    const printed = readFileSync(join(folder, 'printed.txt'), 'utf8');
    expect(printed).toMatch(new RegExp(`^bad: ${name}-b: doctor: `));
    expect(await onFirst('sinfo', '--noheader', '--Node', '--format=%N %T %E')).toBe(
      `${name}-a idle none\n${name}-b drained gradlink check\n`,
    );
  });
});
