import { describe, expect, it } from 'vitest';

import type { GpusFound, Probed, TfjsNodeFound } from '../../lib/doctor/probes.js';
import { tfjsNodeFinding } from '../../lib/doctor/tfjs-node.js';
import type { Finding } from '../../lib/doctor/types.js';

const noDriver: Probed<GpusFound> = { reason: 'no libcuda', broken: false };
const withGpus = (...names: readonly string[]): Probed<GpusFound> => ({
  found: { gpus: names.map((name) => ({ name })), peers: [], libraries: {} } as never,
});
const working: TfjsNodeFound = {
  tensorflow: '2.9.1',
  library: '/deps/lib/libtensorflow.so.2',
  gpu: true,
  failure: null,
};

describe('tfjs-node-gpu', () => {
  const finding = (
    gpus: Probed<GpusFound>,
    found?: Partial<TfjsNodeFound>,
    name: 'tfjs-node' | 'tfjs-node-gpu' = 'tfjs-node-gpu',
  ): Finding =>
    tfjsNodeFinding(
      {
        name,
        version: '4.22.0',
        probed: found === undefined ? undefined : { found: { ...working, ...found } },
      },
      gpus,
    );

  it('on a GPU is as it should be, and says on which', () => {
    expect(finding(withGpus('NVIDIA H200'), {})).toEqual({
      name: 'tfjs-node-gpu',
      status: 'ok',
      text: '4.22.0, TensorFlow 2.9.1 (/deps/lib/libtensorflow.so.2), computes on NVIDIA H200',
      advice: null,
    });
    expect(finding(withGpus('A', 'B'), {}).text).toMatch(/\bon B, .*\b2; .*\bown$/);
  });

  it('on the CPU is not, and says what is missing', () => {
    const cpu = { gpu: false };
    expect(finding(noDriver, cpu)).toMatchObject({ status: 'degraded' });
    expect(finding(noDriver, cpu).text).toMatch(/\bthe CPU$/);
    expect(finding(noDriver, cpu).advice).toBe('no driver: see the line driver above');
    expect(finding(withGpus(), cpu).advice).toContain('CUDA_VISIBLE_DEVICES');
    expect(finding(withGpus('A'), cpu).advice).toContain('needs CUDA 11.2 and cuDNN 8.1');
    expect(finding(withGpus('A'), { gpu: false, tensorflow: '2.17.0' }).advice).not.toContain(
      '11.2',
    );
    expect(finding(withGpus('A'), cpu, 'tfjs-node')).toMatchObject({ status: 'ok', advice: null });
  });

  it('that cannot compute is told with the reason', () => {
    const node = finding(noDriver, { failure: '(0 , util_1.isNullOrUndefined) is not a function' });
    expect(node).toMatchObject({ status: 'degraded' });
    expect(node.advice).toContain('use Node 20 or 22');
    expect(finding(noDriver, { failure: 'no kernel' }).text).toMatch(/operation works: no kernel$/);
    expect(finding(noDriver).text).toBe('4.22.0, but its installer left no binding to TensorFlow');
    expect(finding(noDriver).advice).toContain('npm rebuild @tensorflow/tfjs-node-gpu');
    const probed = { reason: 'crashed (SIGSEGV)', broken: true };
    const crashed = tfjsNodeFinding({ name: 'tfjs-node', version: '4.22.0', probed }, noDriver);
    expect(crashed.text).toBe('4.22.0, does not load: crashed (SIGSEGV)');
  });
});
