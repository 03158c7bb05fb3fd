import { expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { gpuShares } from '../../lib/measure/machine/gpu-share.js';
import { native } from '../../lib/native/load.js';
import { onRealGpus } from './setup/fakes.js';

it('devices tells what each GPU is', () => {
  const all = gpuDevices();
  expect(all).toHaveLength(native().gpuCount());
  expect(new Set(all.map(({ pciBusId }) => pciBusId)).size).toBe(all.length);
  all.forEach((gpu, ordinal) => {
    expect(gpu).toMatchObject({
      ordinal,
      name: expect.stringMatching(/./) as string,
      pciBusId: expect.stringMatching(/^[\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.\d$/) as string,
      computeCapability: expect.stringMatching(/^\d+\.\d+$/) as string,
    });
    expect(gpu.uuid).toMatch(/^(GPU|MIG)-/);
    for (const number of [gpu.memoryBytes, gpu.multiprocessors, gpu.l2Bytes, gpu.copyEngines]) {
      expect(number).toBeGreaterThan(0);
    }
  });
});

it('devices tells how each GPU is, which can be asked again', () => {
  for (const { health, pciBusId } of gpuDevices()) {
    // NVML comes with the driver.
    expect(health).not.toBeNull();
    expect(health?.pcieWidth).toBeLessThanOrEqual(health?.maxPcieWidth ?? 0);
    expect(health?.throttleReasons).toBeInstanceOf(Array);
    if (!onRealGpus) {
      const fine = { numaNode: 0, pcieGeneration: 5, eccErrors: 0, pcieReplays: 0 };
      expect(health).toMatchObject(fine);
    }
    expect(health?.temperatureC).toBeGreaterThan(0);
    // A part of a GPU has none.
    expect([null, 'number']).toContain(
      health?.utilizationPercent === null ? null : typeof health?.utilizationPercent,
    );
    expect(health?.utilizationPercent ?? 0).toBeLessThanOrEqual(100);
    health?.links.forEach((link, index) => {
      expect(link.index).toBe(index);
      expect(link.active).toBeTypeOf('boolean');
      if (onRealGpus) return;
      expect(link).toMatchObject({ version: '4.0', bytesPerSecond: 26_562e6, errors: 0 });
    });
    const again = native().gpuHealth(pciBusId);
    expect(Object.keys(again ?? {})).toEqual(Object.keys(health ?? {}));
  }
  expect(native().gpuHealth('ffff:ff:1f.7')).toBeNull();
});

it('GPUs reach themselves, and tell how they reach others', () => {
  for (const { ordinal: from } of gpuDevices()) {
    for (const { ordinal: to } of gpuDevices()) {
      const peer = native().gpuPeer(from, to);
      expect(peer.access).toBeTypeOf('boolean');
      if (from === to) expect(peer).toMatchObject({ access: true, path: 'X' });
      else expect(['PIX', 'PXB', 'PHB', 'NODE', 'SYS']).toContain(peer.path);
    }
  }
  expect(() => native().gpuPeer(0, gpuDevices().length)).toThrow(TypeError);
});

it('libraries are told with their files', () => {
  const libraries = native().gpuLibraries();
  expect(libraries.driverFile).toContain('libcuda');
  expect(libraries.driverVersion).toBeGreaterThanOrEqual(11_000);
  expect(libraries).toMatchObject({ nvmlMissing: null, ncclMissing: null });
  expect(libraries.ncclFile).toContain('libnccl');
  expect(libraries.ncclVersion).toMatch(/^2\.\d+\.\d+$/);
  expect(libraries.driverRelease).toMatch(/^\d+\.\d+/);
});

it('gpuShares is the mean of what the GPUs tell', () => {
  const known = gpuDevices().flatMap(({ health }) => health?.utilizationPercent ?? []);
  const share = gpuShares()?.();
  if (known.length === 0) expect(share).toBeUndefined();
  else {
    expect(share).toBeGreaterThanOrEqual(0);
    expect(share).toBeLessThanOrEqual(1);
  }
  // The stand-ins' GPUs are busy in 37 of 100 moments.
  if (process.env.GRADLINK_GPU_TESTS !== 'real') expect(share).toBeCloseTo(0.37, 10);
});
