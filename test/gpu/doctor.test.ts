// `gradlink doctor` and `topo` beside GPUs; each finding of a fault in a process of its own.
import { afterEach, describe, expect, it, vi } from 'vitest';

import { gpuFindings } from '../../lib/doctor/gpus.js';
import { probe } from '../../lib/doctor/probes.js';
import type { Diagnosis, Finding, Topology } from '../../lib/doctor/types.js';
import { fourGpus, onRealGpus } from './setup/fakes.js';
import { runScript } from '../support/gpu-commands.js';

Object.assign(process.env, fourGpus);

async function doctor(env: Record<string, string> = {}, ...args: string[]) {
  const { code, stdout, stderr } = await runScript('doctor.js', ['--json', ...args], env);
  const { findings } = JSON.parse(stdout) as Diagnosis;
  return { code, stderr, findings, of: findingOf(findings) };
}

const findingOf = (findings: readonly Finding[]) => (name: string) =>
  findings.find((one) => one.name === name);
/** What the one probe of GPUs finds: a whole run starts six processes more. */
async function seen(env: Record<string, string>) {
  vi.unstubAllEnvs();
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return findingOf(gpuFindings(await probe('gpus', 20_000, process.env)));
}
afterEach(() => vi.unstubAllEnvs());

const registers = (of: Awaited<ReturnType<typeof seen>>) => of('nccl')?.text;

describe('gradlink doctor', () => {
  it('has a line for every part, and is content with good GPUs', async () => {
    const { code, findings, of } = await doctor({}, '--require', 'driver,nccl,gpu,simd');
    expect(code).toBe(0);
    const names = findings.map(({ name }) => name);
    for (const name of ['cores', 'memory', 'shared memory', 'ptrace scope', 'memory bandwidth']) {
      expect(names).toContain(name);
    }
    for (const name of ['openmpi', 'mpich', 'tfjs', 'job', 'slurm', 'ssh', 'nvml', 'gpu:0']) {
      expect(names).toContain(name);
    }
    for (const { status, advice } of findings) expect(advice === null).toBe(status === 'ok');
    expect(of('memory bandwidth')?.text).toMatch(/^\d+\.\d\d GB\/s/);
    expect(of('gpus')).toBeUndefined();
    if (!onRealGpus) expect(registers(of)).toMatch(/registers memory.*symmetric windows$/);
  });

  describe.skipIf(onRealGpus)('on a machine with faults', () => {
    it('names links that are down, narrow slots, throttling and confidential computing', async () => {
      const faults = 'links-down=0-1:2,pcie-width=2:8,throttle=3,nccl-version=22602,confidential';
      const of = await seen({ GRADLINK_FAKE_FAULTS: faults });
      expect(registers(of)).toMatch(/registers memory.*symmetric windows \(since 2\.27\)$/);
      expect(of('gpu:0')).toMatchObject({ status: 'degraded' });
      expect(of('gpu:0')?.text).toContain('2 NVLinks fewer');
      expect(of('gpu:2')?.text).toContain('PCIe x8 of x16');
      expect(of('gpu:3')?.text).toContain('clocks');
      expect(of('gpu:3')?.advice).toContain('cooling');
      expect(of('gpus')).toMatchObject({ status: 'degraded' });
      expect(of('gpus')?.text).toContain('confidential computing');
    });

    it('names what CUDA_VISIBLE_DEVICES shows and hides, by number and by id', async () => {
      const of = await seen({ CUDA_VISIBLE_DEVICES: '2,GPU-a0a3' });
      expect(of('gpus')).toMatchObject({ status: 'ok' });
      expect(of('gpus')?.text).toMatch(
        /^2 visible, 2 of 4 hidden; CUDA_VISIBLE_DEVICES is '2,GPU-a0a3'; hidden: GPU-b1b4[-0-9a-f]+, GPU-d3d6[-0-9a-f]+$/,
      );
      expect(of('gpu:1')?.status).toBe('ok');
      expect(of('gpu:2')).toBeUndefined();
      const none = await seen({ CUDA_VISIBLE_DEVICES: '7' });
      expect(none('driver')?.advice).toContain("CUDA_VISIBLE_DEVICES is '7'");
    });

    it('names a MIG part, and that links and health are those of the whole GPU', async () => {
      const of = await seen({
        CUDA_VISIBLE_DEVICES: 'MIG-4e4b',
        GRADLINK_FAKE_FAULTS: 'mig=1,nccl-version=21805',
      });
      expect(registers(of)).toMatch(/registers no.*\(since 2\.19\)$/);
      expect(of('gpus')?.text).toContain('1 visible, 3 of 4 hidden');
      expect(of('gpu:0')).toMatchObject({ status: 'ok' });
      expect(of('gpu:0')?.text).toMatch(/MIG-4e4b[-0-9a-f]+.*MIG.*0000:18:00\.0.*whole GPU.*PCIe/);
    });

    it('fails only where it is asked to, not for GPUs that are too old for the kernels', async () => {
      const faults = { GRADLINK_FAKE_FAULTS: 'nvml-absent', GRADLINK_NCCL_REGISTER: 'no' };
      const env = { ...faults, GRADLINK_FAKE_CAPABILITY: '37' };
      const { code, stderr, of } = await doctor(env, '--require', 'nvml,driver');
      expect(code).toBe(1);
      expect(stderr).toMatch(/^gradlink: .*: nvml\n$/);
      expect(of('nvml')?.status).toBe('missing');
      expect(registers(of)).toMatch(/: GRADLINK_NCCL_REGISTER=no$/);
      expect(of('gpu:0')).toMatchObject({ status: 'degraded' });
      expect(of('gpu:0')?.text).toMatch(/capability 3\.7, .* 5\.0$/);
      expect(of('gpu:0')?.advice).toContain('--gpus');
      const older = await seen({ GRADLINK_FAKE_FAULTS: 'driver=9020' });
      expect(older('gpu:0')?.status).toBe('degraded');
    });

    it('survives a driver that does not start, and one that ends its process', async () => {
      const failing = await seen({ GRADLINK_FAKE_FAULTS: 'init=999' });
      expect(failing('driver')?.status).not.toBe('ok');
      // A setting that the stand-in cannot understand ends its process.
      const of = await seen({ GRADLINK_FAKE_GPUS: 'many' });
      expect(of('driver')).toMatchObject({ status: 'degraded' });
      expect(of('driver')?.text).toMatch(/crashed|status \d/);
    });
  });
});

describe('gradlink topo', () => {
  it.skipIf(onRealGpus)('has the matrix of nvidia-smi, and links now and possible', async () => {
    const faults = { GRADLINK_FAKE_FAULTS: 'links-down=0-1:2' };
    const { code, stdout } = await runScript('topo.js', [], faults);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^gpu:0 +X +NV4 +NV6 +NV6/m);
    expect(stdout).toMatch(/^gpu:1 +NV4 +X /m);
    expect(stdout).toMatch(/gpu:0 - gpu:1: 106\.25 GB\/s.* 159\.37 GB\/s.*2 NVLinks/);
    expect(stdout).toMatch(/^NUMA node/m);
  });

  it.skipIf(onRealGpus)('marks ways without peer access', async () => {
    const env = { GRADLINK_FAKE_NVLINK: 'none', GRADLINK_FAKE_PEERS: '0-1' };
    const { stdout } = await runScript('topo.js', ['--json'], env);
    const { links } = JSON.parse(stdout) as Topology;
    const way = (from: number, to: number) => links.find((l) => l.from === from && l.to === to);
    expect(way(0, 1)).toMatchObject({ peerAccess: true, links: 0, bytesPerSecond: null });
    expect(way(0, 2)?.peerAccess).toBe(false);
    expect(way(0, 2)?.kind).toMatch(/^(PIX|PXB|PHB|NODE|SYS)$/);
  });
});
