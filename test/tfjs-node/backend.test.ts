// What `useBackend` does about GPUs, in processes of their own: TensorFlow looks for GPUs once a process. On this package
// without a GPU, or on a machine that hides its GPUs.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { Launches, gradlink, type Ended } from '../support/launching.js';

const launches = new Launches();
afterAll(() => launches.remove());

const library = new URL('../../dist/tfjs.js', import.meta.url).href;
const none = { CUDA_VISIBLE_DEVICES: '-1' };

/** A worker that calls `useBackend` and prints what came of it and what TensorFlow saw. */
function program(call: string): string {
  const path = join(launches.scratch, 'backend.mjs');
  writeFileSync(
    path,
    `import { useBackend } from ${JSON.stringify(library)};
     const seen = () => {
       const { CUDA_VISIBLE_DEVICES, TF_FORCE_GPU_ALLOW_GROWTH } = process.env;
       return { CUDA_VISIBLE_DEVICES, TF_FORCE_GPU_ALLOW_GROWTH };
     };
     try {
       const backend = await ${call};
       console.log(JSON.stringify({ rank: process.env.GRADLINK_RANK, ...backend, ...seen() }));
     } catch (error) {
       const { code, message } = error;
       console.log(JSON.stringify({ rank: process.env.GRADLINK_RANK, code, message, ...seen() }));
     }`,
  );
  return path;
}

const linesOf = ({ stdout }: Ended): Record<string, unknown>[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .sort((a, b) => Number(a['rank']) - Number(b['rank']));

const run = async (
  workers: number,
  call: string,
  env: Record<string, string>,
  ...args: string[]
): Promise<{ lines: Record<string, unknown>[]; stderr: string }> => {
  const ended = await launches.run(
    ['-n', String(workers), ...args, process.execPath, program(call)],
    { env },
  );
  return { lines: linesOf(ended), stderr: ended.stderr };
};

const allowed = "useBackend('node-gpu', { allowCpu: true })";

describe('without a GPU', () => {
  it('node-gpu is refused, unless the CPU is allowed or nobody named it', async () => {
    const [refused] = (await run(1, "useBackend('node-gpu')", none)).lines;
    expect(refused).toMatchObject({ code: 'ERR_BACKEND_UNAVAILABLE' });
    expect(refused?.['message']).toContain("(CUDA_VISIBLE_DEVICES is '-1')");
    expect(refused?.['message']).toContain('allowCpu: true, or --allow-cpu');
    const onCpu = { name: 'node-gpu', engine: 'tensorflow', device: 'CPU' };
    expect((await run(1, allowed, none)).lines).toMatchObject([onCpu]);
    expect((await run(1, 'useBackend()', none)).lines).toMatchObject([onCpu]);
    expect((await run(1, "useBackend('node')", none)).lines).toMatchObject([
      { ...onCpu, name: 'node' },
    ]);
  });

  it('the commands refuse it too, and call the CPU a CPU where they go on', async () => {
    const tiny = ['train', '--model', 'mlp', '--dataset', 'mnist', '--image-size', '4'];
    const short = [...tiny, '--batch-size', '2', '--steps', '1', '--backend', 'node-gpu'];
    const train = (...args: string[]) =>
      launches.run(['-n', '1', process.execPath, gradlink, ...short, ...args], { env: none });
    const refused = await train();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/GPU.*@tensorflow\/tfjs-node-gpu/);
    const ddp = ['ddp', '--model', 'mlp', '--dataset', 'mnist', '--backend', 'node-gpu'];
    const compared = await launches.run(['-n', '1', process.execPath, gradlink, ...ddp], {
      env: none,
    });
    expect(compared.code).toBe(1);
    expect(compared.stderr).toMatch(/GPU.*@tensorflow\/tfjs-node-gpu/);
    const { code, stdout } = await train('--allow-cpu');
    expect(code).toBe(0);
    expect(stdout).toMatch(/CPUs: 1$/m);
    expect(stdout).not.toMatch(/\bGPU/);
    expect(stdout).toMatch(/tfjs 4\.22\.0 .*node-gpu\n +computed .*CPU$/m);
  });
});

it('a Node without what the package calls is named, and those that have it', async () => {
  // As from Node 23 on.
  const call = `(async () => {
    delete (await import('node:util')).default.isNullOrUndefined;
    return await useBackend();
  })()`;
  const [refused] = (await run(1, call, none)).lines;
  expect(refused).toMatchObject({ code: 'ERR_BACKEND_UNAVAILABLE' });
  expect(refused?.['message']).toMatch(
    /^gradlink\/tfjs .*@tensorflow\/tfjs-node-gpu.*util\.isNullOrUndefined.* Node \d+.* Node 20 or 22, /,
  );
});

describe('a GPU for each rank', () => {
  it('is its entry of the list that the user gave, and memory grows', async () => {
    const { lines, stderr } = await run(3, allowed, { CUDA_VISIBLE_DEVICES: '4,7,5' });
    expect(lines.map((line) => line['CUDA_VISIBLE_DEVICES'])).toEqual(['4', '7', '5']);
    expect(lines.map((line) => line['TF_FORCE_GPU_ALLOW_GROWTH'])).toEqual([
      'true',
      'true',
      'true',
    ]);
    expect(stderr).toBe('');
  });

  it('that ranks share is warned of, once a GPU', async () => {
    const { lines, stderr } = await run(3, allowed, { CUDA_VISIBLE_DEVICES: '4,7' });
    expect(lines.map((line) => line['CUDA_VISIBLE_DEVICES'])).toEqual(['4', '7', '4']);
    const warnings = stderr.match(/\[GRADLINK_GPU_SHARED\] GradlinkWarning: .*/g);
    expect(warnings).toHaveLength(1);
    expect(warnings?.[0]).toMatch(/2 ranks .*GPU 4: .*2 GPUs/);
  });

  it('is given by the launcher where it is asked to, before any program is loaded', async () => {
    const env = { CUDA_VISIBLE_DEVICES: '4,7', TF_FORCE_GPU_ALLOW_GROWTH: 'false' };
    const { lines, stderr } = await run(3, 'null', env, '--gpu-per-worker');
    expect(lines.map((line) => line['CUDA_VISIBLE_DEVICES'])).toEqual(['4', '7', '4']);
    expect(lines.map((line) => line['TF_FORCE_GPU_ALLOW_GROWTH'])).toEqual([
      'false',
      'false',
      'false',
    ]);
    expect(stderr).toMatch(/^gradlink launch: 2 workers .*GPU 4: .*2 GPUs; .*\n$/);
    // useBackend() then has nothing to add.
    const both = await run(2, allowed, env, '--gpu-per-worker');
    expect(both.lines.map((line) => line['CUDA_VISIBLE_DEVICES'])).toEqual(['4', '7']);
    expect(both.stderr).toBe('');
  });

  it('is not taken by a program of its own, which sees all', async () => {
    const { env } = process;
    const bare = Object.fromEntries(
      Object.entries({ ...env, CUDA_VISIBLE_DEVICES: '4,7' }).filter(
        ([name]) => !/^(GRADLINK_(JOB|RANK|LOCAL)|OMPI_|PMI_|SLURM_)/.test(name),
      ),
    ) as Record<string, string>;
    const { execFileSync } = await import('node:child_process');
    const stdout = execFileSync(process.execPath, [program(allowed)], {
      env: bare,
      encoding: 'utf8',
    });
    expect(JSON.parse(stdout)).toMatchObject({
      CUDA_VISIBLE_DEVICES: '4,7',
      TF_FORCE_GPU_ALLOW_GROWTH: 'true',
    });
  });
});
