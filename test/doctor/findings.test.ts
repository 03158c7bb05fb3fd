import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { gpuFindings } from '../../lib/doctor/gpus.js';
import {
  addonFindings,
  hugePagesFinding,
  ptraceFinding,
  sharedMemoryFinding,
} from '../../lib/doctor/host.js';
import { launcherFindings } from '../../lib/doctor/launchers.js';
import { mpiFinding, mpichBuild, openMpiBuild } from '../../lib/doctor/mpi.js';
import { findPackage, tfjsFinding } from '../../lib/doctor/tfjs.js';
import { readNetworks, readNodes } from '../../lib/doctor/topology.js';
import { folderOfEachTest } from '../support/folders.js';

let folder = '';
folderOfEachTest((made) => (folder = made));

function write(path: string, text: string): void {
  const file = join(folder, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
}

describe('the host', () => {
  it('without a folder for shared memory says so', () => {
    const found = sharedMemoryFinding(join(folder, 'none'));
    expect(found).toMatchObject({ name: 'shared memory', status: 'missing' });
    expect(found.advice).toContain('mount');
  });

  it.each([
    ['[always] madvise never', 'ok', 'arrays: for all; memory between processes: within_size'],
    ['always [madvise] never', 'ok', 'arrays: on request; memory between processes: within_size'],
    ['always madvise [never]', 'degraded', 'arrays: never; memory between processes: within_size'],
  ])('huge pages %j are %s', (enabled, status, text) => {
    write('enabled', `${enabled}\n`);
    write('shmem_enabled', 'always [within_size] advise never deny force\n');
    const found = hugePagesFinding(folder);
    expect(found).toMatchObject({ status, text });
    expect(found.advice === null).toBe(status === 'ok');
  });

  it('a kernel without huge pages is in order', () => {
    expect(hugePagesFinding(join(folder, 'none'))).toMatchObject({ status: 'ok', advice: null });
  });

  it.each([
    [undefined, 'ok'],
    ['0', 'ok'],
    ['1', 'degraded'],
    ['3', 'degraded'],
  ])('ptrace scope %j is %s', (text, status) => {
    expect(ptraceFinding(text).status).toBe(status);
  });

  it('a missing addon is a line with what to do, and takes the lines that need it along', () => {
    const found = addonFindings({ reason: 'crashed (SIGSEGV)', broken: true });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ name: 'addon', status: 'missing', text: 'crashed (SIGSEGV)' });
    const reason = 'did not load. Tried:\n  one: no\nDo one of these:\n  - this\n  - that';
    expect(addonFindings({ reason, broken: false })).toEqual([
      {
        name: 'addon',
        status: 'missing',
        text: 'did not load. Tried:\n  one: no',
        advice: 'this; or that',
      },
    ]);
  });
});

describe('MPI', () => {
  it('is read from what its own programs print', () => {
    const text =
      'option:threads:"posix (MPI_THREAD_MULTIPLE: yes, OPAL support: yes)"\nmca:mpi:base:param:mpi_built_with_cuda_support:value:true\n';
    expect(openMpiBuild(text)).toEqual({ threads: true, cudaAware: true });
    expect(openMpiBuild(text.replace('yes', 'no').replace('true', 'false'))).toEqual({
      threads: false,
      cudaAware: false,
    });
    expect(openMpiBuild('')).toEqual({ threads: null, cudaAware: null });
    const configure = 'MPICH Version:\t4.0.2\nMPICH configure:\t--prefix=/usr ';
    expect(mpichBuild(configure)).toEqual({ threads: true, cudaAware: false });
    expect(mpichBuild(`${configure}--with-cuda=/usr/local/cuda --enable-threads=single`)).toEqual({
      threads: false,
      cudaAware: true,
    });
    expect(mpichBuild(`${configure}--with-cuda=no`)).toMatchObject({ cudaAware: false });
    expect(mpichBuild('')).toEqual({ threads: null, cudaAware: null });
  });

  it('that crashes is degraded, one that is not there is missing', () => {
    const unknown = { threads: null, cudaAware: null };
    const crashed = mpiFinding(
      'openmpi',
      { reason: 'crashed (SIGSEGV)', broken: true },
      unknown,
      {},
    );
    expect(crashed).toMatchObject({ status: 'degraded', text: 'Open MPI: crashed (SIGSEGV)' });
    const absent = mpiFinding('mpich', { reason: 'no such file', broken: false }, unknown, {});
    expect(absent).toMatchObject({ status: 'missing', text: 'no MPICH that loads' });
    // The part of gradlink for it is in the package: nothing has to be compiled.
    expect(absent.advice).toMatch(/apt-get .*\bmpich\b/);
    expect(absent.advice).not.toContain('build');
  });

  it('whose part of gradlink is missing is told with the command that an application has', () => {
    const unknown = { threads: null, cudaAware: null };
    write('bin/mpirun.openmpi', '');
    chmodSync(join(folder, 'bin/mpirun.openmpi'), 0o755);
    const env = { PATH: join(folder, 'bin') };
    const reason = '/x/gradlink_openmpi.so: cannot open shared object file: No such file';
    const unbuilt = mpiFinding('openmpi', { reason, broken: false }, unknown, env);
    expect(unbuilt.advice).toBe(
      'needed for jobs under Open MPI: apt-get install libopenmpi-dev, then npx gradlink build',
    );
    const elsewhere = mpiFinding(
      'openmpi',
      { reason: '(libmpi.so.40: cannot open shared object file)', broken: false },
      unknown,
      env,
    );
    expect(elsewhere.text).toContain('libmpi.so.40 is not');
    expect(elsewhere.advice).toContain('LD_LIBRARY_PATH');
  });
});

describe('GPUs', () => {
  it('no driver is missing, one that fails is degraded with its own words', () => {
    expect(gpuFindings({ reason: 'no libcuda: install it', broken: false })).toMatchObject([
      { name: 'driver', status: 'missing', text: 'no libcuda' },
    ]);
    expect(gpuFindings({ reason: 'cuInit: unknown error', broken: true })).toMatchObject([
      { name: 'driver', status: 'degraded', text: 'cuInit: unknown error' },
    ]);
    const libraries = { driverRelease: null, driverVersion: 12_040, driverFile: 'libcuda.so' };
    const found = { libraries, gpus: [], peers: [], installed: [] };
    expect(gpuFindings({ found } as never)[0]?.text).toBe('CUDA 12.4 (libcuda.so)');
  });
});

describe('launchers', () => {
  const byName = (env: Record<string, string>, hostfile?: string) =>
    new Map(launcherFindings(env, hostfile).map((finding) => [finding.name, finding]));

  it('names the job that this process is of', () => {
    const job = { GRADLINK_JOB: 'x', GRADLINK_RANK: '1', GRADLINK_SIZE: '4' };
    expect(byName(job).get('job')?.text).toContain('rank 1 of 4, ');
    expect(byName({}).get('job')?.text).toContain('none');
    expect(byName({ ...job, GRADLINK_RANK: '9' }).get('job')?.status).toBe('degraded');
  });

  it('says which network is chosen, and why', () => {
    const network = (env: Record<string, string>) => byName(env).get('network');
    const chosen = { GRADLINK_INTERFACE: '127.0.0.0/8', GRADLINK_PORTS: '40000-40100' };
    expect(network(chosen)).toMatchObject({ status: 'ok', advice: null });
    for (const said of ['lo (127.0.0.1)', '127.0.0.0/8', 'GRADLINK_INTERFACE', '40000 to 40100']) {
      expect(network(chosen)?.text).toContain(said);
    }
    expect(network({})?.text).toContain('lo (127.0.0.1/8');
    expect(network({ GRADLINK_INTERFACE: 'none0' })?.status).toBe('degraded');
    expect(network({ GRADLINK_PORTS: '1' })?.status).toBe('degraded');
  });

  it('looks for programs on the path that it is given', () => {
    write('bin/srun', '');
    expect(byName({ PATH: join(folder, 'bin') }).get('slurm')?.status).toBe('missing');
    expect(byName({ PATH: '/usr/bin:/bin' }).has('ssh')).toBe(true);
  });

  it('counts the slots of a hostfile, or says which line is wrong', () => {
    write('hosts', 'one:4\ntwo slots=2\n');
    expect(byName({}, join(folder, 'hosts')).get('hostfile')?.text).toContain('2 hosts, 6 slots');
    write('hosts', 'one:0\n');
    expect(byName({}, join(folder, 'hosts')).get('hostfile')).toMatchObject({ status: 'missing' });
    expect(byName({}).has('hostfile')).toBe(false);
  });
});

describe('TensorFlow.js', () => {
  it('is found as Node finds packages, from a folder upwards', () => {
    write('node_modules/@tensorflow/tfjs-core/package.json', '{"version": "4.1.2"}');
    const name = '@tensorflow/tfjs-core';
    expect(findPackage([join(folder, 'a/b')], name)).toEqual({
      folder: join(folder, 'node_modules', name),
      version: '4.1.2',
    });
    expect(findPackage([folder], '@tensorflow/none-such')).toBeUndefined();
    expect(tfjsFinding(folder).text).toContain('core 4.1.2');
  });
});

describe('topology of the host', () => {
  it('reads nodes in the order of their numbers, with cores, memory and distances', () => {
    for (const [node, cores] of [
      [0, '0-3'],
      [1, '4-7'],
      [10, '8'],
    ] as const) {
      write(`node${String(node)}/cpulist`, `${cores}\n`);
      write(`node${String(node)}/meminfo`, `Node ${String(node)} MemTotal:       2048 kB\n`);
      write(`node${String(node)}/distance`, '10 21 31\n');
    }
    write('online', '0-1\n');
    const nodes = readNodes(folder);
    expect(nodes.map(({ node }) => node)).toEqual([0, 1, 10]);
    expect(nodes[1]).toEqual({
      node: 1,
      cores: '4-7',
      memoryBytes: 2048 * 1024,
      distances: [10, 21, 31],
    });
    expect(readNodes(join(folder, 'none'))).toEqual([]);
  });

  it('reads networks but the loopback, and does not guess a speed', () => {
    write('lo/operstate', 'up');
    write('ib0/operstate', 'up');
    write('ib0/speed', '200000\n');
    write('ib0/device/numa_node', '1\n');
    write('eth0/operstate', 'down');
    write('eth0/speed', '-1\n');
    write('eth0/device/numa_node', '-1\n');
    expect(readNetworks(folder)).toEqual([
      { name: 'eth0', bitsPerSecond: null, up: false, numaNode: null },
      { name: 'ib0', bitsPerSecond: 200e9, up: true, numaNode: 1 },
    ]);
  });
});
