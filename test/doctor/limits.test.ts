// What bounds a process, from made-up trees of control groups.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import {
  coresFinding,
  limitsFinding,
  memoryFinding,
  type Machine,
} from '../../lib/doctor/limits.js';
import { judge } from '../../lib/measure/index.js';
import { containerLimits, type ContainerLimits } from '../../lib/results/container-limits.js';
import { folderOfEachTest } from '../support/folders.js';

let folder = '';
folderOfEachTest((made) => (folder = made));

type Tree = Readonly<Record<string, string>>;

/** Bounds within a tree: `cgroup` and `limits` are the files of /proc/self, all else lies in /sys/fs/cgroup. */
function limitsOf(tree: Tree): ContainerLimits {
  for (const [path, text] of Object.entries(tree)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), `${text}\n`);
  }
  return containerLimits({
    groups: join(folder, 'cgroup'),
    hierarchy: folder,
    limits: join(folder, 'limits'),
  });
}

/** A file for each `NAME=TEXT`, with commas for the ends of lines. */
const tree = (files: string): Tree =>
  Object.fromEntries(
    files.split('; ').map((one) => {
      const at = one.indexOf('=');
      return [one.slice(0, at), one.slice(at + 1).replaceAll(', ', '\n')];
    }),
  );

/** Each resource with files of both versions: three levels, of which `LEVEL` has the bound. */
const gib = 2 ** 30;
const resources = (
  [
    ['cores', 'cpu', 1.5, ({ cores }) => cores?.value],
    ['cpuset', 'cpuset', 4, ({ cpuset }) => cpuset?.value],
    ['memory', 'memory', gib, ({ memoryBytes }) => memoryBytes?.value],
    ['memory and swap', 'memory', 3 * gib, (l) => l.memoryAndSwapBytes?.value],
    // Without copies of files.
    ['memory that is left', 'memory', 400, (l) => l.memoryLeftBytes ?? undefined],
    ['processes', 'pids', 100, ({ processes }) => processes?.value],
    ['huge pages', 'hugetlb', 4194304, ({ hugePages }) => hugePages['2MB']?.value],
    ['io', 'blkio', 1048576, ({ io }) => io['8:0 wbps']?.value],
  ] as readonly (readonly [string, string, number, (l: ContainerLimits) => number | undefined])[]
).map(([name, controller, value, read], i) => {
  const [v1 = '', v2 = ''] = `
cpu.cfs_quota_us=150000; cpu.cfs_period_us=100000 | cpu.max=150000 100000
cpuset.cpus=0-2,8 | cpuset.cpus.effective=0-2,8
memory.limit_in_bytes=${gib} | memory.max=${gib}
memory.memsw.limit_in_bytes=${3 * gib} | memory.swap.max=${2 * gib}; memory.max=${gib}
memory.limit_in_bytes=1000; memory.usage_in_bytes=700; memory.stat=total_inactive_file 50, total_active_file 50, inactive_file 9 | memory.max=1000; memory.current=700; memory.stat=inactive_file 50, active_file 50
pids.max=100 | pids.max=100
hugetlb.2MB.limit_in_bytes=4194304 | hugetlb.2MB.max=4194304
blkio.throttle.write_bps_device=8:0 1048576 | io.max=8:0 rbps=max wbps=1048576 riops=max wiops=max`
    .split('\n')
    [i + 1]!.split(' | ');
  return [name, controller, tree(v1), tree(v2), value, read] as const;
});

/** What says "no bound" in either version. */
const unbounded: Tree = {
  'cpu.cfs_quota_us': '-1',
  'cpu.max': 'max 100000',
  'memory.limit_in_bytes': '9223372036854771712',
  'memory.max': 'max',
  'pids.max': 'max',
};

const levels = ['/pod/run', '/pod', ''];

describe.each(resources)('%s', (_, controller, v1, v2, value, read) => {
  const under = (root: string, level: string, files: Tree): Tree =>
    Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`${root}${level}/${name}`, text]),
    );
  it.each(levels)('of version 1, at level "%s"', (level) => {
    // Controllers that are mounted together.
    const groups = `7:${controller},other:/pod/run`;
    const root = `${controller},other`;
    const tree = { ...under(root, '/pod/run', unbounded), ...under(root, level, v1) };
    expect(read(limitsOf({ cgroup: groups, ...tree }))).toBe(value);
  });
  it.each(levels)('of version 2, at level "%s"', (level) => {
    const tree = { ...under('.', '/pod/run', unbounded), ...under('.', level, v2) };
    expect(read(limitsOf({ cgroup: '0::/pod/run', ...tree }))).toBe(value);
  });
  it('of both, whose path is the host’s', () => {
    const cgroup = `7:${controller}:/docker/abc\n0::/docker/abc`;
    expect(read(limitsOf({ cgroup, ...under(controller, '', v1) }))).toBe(value);
    rmSync(join(folder, controller), { recursive: true });
    expect(read(limitsOf({ cgroup, ...under('unified', '', v2) }))).toBe(value);
  });
  it('nowhere', () => {
    expect(read(limitsOf({ cgroup: '0::/', ...unbounded }))).toBeUndefined();
  });
});

it('of all levels and versions the least counts', () => {
  const tree = {
    cgroup: '4:memory:/a/b\n0::/a/b',
    'memory/a/b/memory.limit_in_bytes': '500',
    'memory/a/memory.limit_in_bytes': '300',
    'unified/a/b/memory.max': '400',
  };
  expect(limitsOf(tree).memoryBytes).toEqual({
    value: 300,
    file: join(folder, 'memory/a/memory.limit_in_bytes'),
  });
});

it('the process’s own limits', () => {
  const line = (name: string, soft: string) => `${name.padEnd(26)}${soft.padEnd(21)}unlimited  x`;
  const limits = limitsOf({
    cgroup: '0::/',
    limits: [
      line('Max open files', '256'),
      line('Max locked memory', '65536'),
      line('Max processes', '100'),
      line('Max address space', 'unlimited'),
      line('Max file size', '1000'),
    ].join('\n'),
  });
  expect(limits).toMatchObject({
    openFiles: { value: 256 },
    lockedBytes: { value: 65536 },
    userProcesses: { value: 100 },
    addressBytes: null,
    fileBytes: { value: 1000 },
  });
  const found = limitsFinding(limits);
  expect(found).toMatchObject({ name: 'limits', status: 'degraded' });
  for (const word of ['ulimit -n', 'ulimit -u', 'ulimit -f']) expect(found.advice).toContain(word);
  const at = (value: number) => ({ value, file: '' });
  const enough = { openFiles: at(1024), userProcesses: at(512), fileBytes: at(gib) };
  const fine = limitsFinding({ ...limits, ...enough, lockedBytes: at(2 ** 23) });
  expect(fine).toMatchObject({ status: 'ok', text: expect.stringMatching(/\b8\.0 MiB\b/) });
});

describe('findings', () => {
  const machine: Machine = {
    cores: 8,
    allowed: 8,
    model: 'EPYC',
    memoryBytes: 16 * gib,
    freeBytes: 12 * gib,
  };

  it('nothing is bound', () => {
    const limits = limitsOf({ cgroup: '0::/' });
    const found = [
      coresFinding(limits, machine),
      memoryFinding(limits, machine),
      limitsFinding(limits),
    ];
    expect(found.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
    const all = coresFinding({ ...limits, cores: { value: 8, file: '' } }, machine);
    expect(all.status).toBe('ok');
    expect(found[1]!.text).toContain('16 GiB, 12 GiB free');
    const left = (freeBytes: number) => memoryFinding(limits, { ...machine, freeBytes }).status;
    expect([0.05, 0.049].map((share) => left(share * 16 * gib))).toEqual(['ok', 'degraded']);
  });

  it('cores and memory are bound', () => {
    const limits = limitsOf({
      cgroup: '0::/a',
      'a/cpu.max': '250000 100000',
      'a/memory.max': String(2 * gib),
      'a/memory.current': String(2 * gib),
      'a/pids.max': '64',
      'a/io.max': '8:0 wbps=1000',
    });
    const [cores, memory, rest] = [
      coresFinding(limits, machine),
      memoryFinding(limits, machine),
      limitsFinding(limits),
    ];
    expect([cores, memory, rest].map(({ status }) => status)).toEqual(Array(3).fill('degraded'));
    expect(cores.text).toContain('2.5');
    expect(memory.text).toMatch(/2\.0 GiB of 16 GiB.*memory\.max.*0\.0 GiB free/);
    expect(rest.text).toMatch(/\b64\b.*8:0 wbps 1000/);
  });

  it('a low figure’s cause names the grant', () => {
    const seconds = { samples: 9, minSeconds: 1, medianSeconds: 1, p95Seconds: 1 };
    const statistics = { ...seconds, medianInterval: { lowerSeconds: 1, upperSeconds: 1 } };
    const limit = { ratio: 0.1, boundSeconds: 0.1, mustMoveBytes: 1e9 };
    const verdict = (grantedCores: number | null) =>
      judge({
        statistics,
        limit,
        bytes: 1e9,
        threads: 4,
        availableCores: 4,
        grantedCores,
      } as never);
    expect(verdict(1.5).likelyCause).toMatch(/1\.5 cores/);
    expect(verdict(4).likelyCause).not.toMatch(/control group/);
    expect(verdict(null).likelyCause).not.toMatch(/control group/);
  });
});
