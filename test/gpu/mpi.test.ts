// Worlds of MPI whose ranks' arrays are on GPUs, under real mpiruns.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { TestContext } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { onRealGpus } from './setup/fakes.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { well } from '../support/processes.js';
import { everything, rightWorld, wholeWorld } from '../support/world.js';

const present = gpuDevices().length;

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/** A library whose functions answer before the MPI's: it takes GPU memory. */
function cudaAwareAnswers(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'gradlink-mpix-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [source, library] = [join(folder, 'answers.c'), join(folder, 'answers.so')];
  writeFileSync(
    source,
    `int MPIX_Query_cuda_support(void) { return 1; }
     int MPIX_GPU_query_support(int kind, int* is) { *is = kind == 0; return 0; }`,
  );
  const { status } = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source]);
  if (status !== 0) context.skip('no C compiler');
  return library;
}

/** On one host messages go through its memory, whatever MPI takes. */
const eachAHost = { GRADLINK_RANKS_PER_NODE: '1' };

/** Each rank on a GPU, with what makes buffers and reads them. */
const aWorld = `
  const own = Number(process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK) % ${present};
  const comm = await Communicator.world({ backend: 'mpi', gpu: own });
  const { rank, size } = comm;
  const filled = async (dtype, values) => {
    const buffer = DeviceBuffer.alloc(own, dtype, values.length);
    if (values.length > 0) await buffer.copyFrom(values);
    return buffer;
  };
  const zeros = (count) => filled('float64', new Float64Array(count));
`;

describe.each(flavours)('under mpirun of %s', (flavour) => {
  it.for([2, 3])('%d ranks on GPUs compute what ranks of the host do', async (size, context) => {
    const mpirun = mpirunOf(flavour, context);
    const ended = await startJob(scripts, mpirun, size, everything('mpi', present), scripts.env())
      .ended;
    expect(ended).toMatchObject(well);
    expect(wholeWorld(ended.reports)).toEqual(rightWorld(size, 'mpi'));
    scripts.expectNothingLeft();
  });

  it('an MPI that is said to take GPU memory gets it: every call', async (context) => {
    // Any takes the stand-ins' memory, which is the host's. A real GPU's ends one that was not built for it.
    if (onRealGpus) context.skip('needs an MPI that takes GPU memory');
    const mpirun = mpirunOf(flavour, context);
    const env = scripts.env({ ...eachAHost, GRADLINK_MPI_CUDA: 'yes' });
    const { reports, ...ended } = await startJob(
      scripts,
      mpirun,
      2,
      everything('mpi', present),
      env,
    ).ended;
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(wholeWorld(reports)).toEqual(rightWorld(2, 'mpi'));
    scripts.expectNothingLeft();
  });

  it.runIf(!onRealGpus).for(['yes', 'no', 'auto', 'auto, of an MPI that says yes'])(
    'long messages are staged unless it is said, GRADLINK_MPI_CUDA=%s',
    async (said, context) => {
      const direct = said.includes('yes');
      const mpirun = mpirunOf(flavour, context);
      // Without page-locked memory nothing can be staged.
      const env = {
        ...eachAHost,
        GRADLINK_MPI_CUDA: said.split(',')[0]!,
        ...(direct && said !== 'yes' ? { LD_PRELOAD: cudaAwareAnswers(context) } : {}),
        GRADLINK_FAKE_FAULTS: 'pinned-oom',
      };
      const { reports } = await startJob(
        scripts,
        mpirun,
        2,
        `${aWorld}
        const count = 2000;
        const data = DeviceBuffer.alloc(own, 'float64', count);
        await data.fill(rank + 5);
        const timeoutMs = 3000;
        const call = rank === 0 ? comm.send(data, { to: 1, timeoutMs }) : comm.receive(data, { from: 0, timeoutMs });
        const { code } = await outcome(call);
        report([rank, code ?? [...await data.copyTo()].every((value) => value === 5)]);
        process.exit(0);`,
        scripts.env(env),
      ).ended;
      const told = (reports as [number, unknown][]).filter((one) => Array.isArray(one));
      expect(told.sort(([a], [b]) => a - b)).toEqual(
        direct
          ? [
              [0, true],
              [1, true],
            ]
          : [
              [0, expect.stringMatching(/^ERR_/)],
              [1, expect.stringMatching(/^ERR_/)],
            ],
      );
    },
  );

  it('another word for it is refused', async (context) => {
    const mpirun = mpirunOf(flavour, context);
    const { reports } = await startJob(
      scripts,
      mpirun,
      1,
      `report(await outcome(Communicator.world({ backend: 'mpi', gpu: 0 }))); process.exit(0);`,
      scripts.env({ GRADLINK_MPI_CUDA: 'perhaps' }),
    ).ended;
    expect(reports[0]).toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    expect((reports[0] as Error).message).toMatch(/GRADLINK_MPI_CUDA.*yes, no.*auto.*'perhaps'/);
  });

  it('float8 is moved, and sums, scales and shared memory of it are refused', async (context) => {
    const mpirun = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      mpirun,
      2,
      `${aWorld}
      const small = DeviceBuffer.alloc(own, 'float8e4m3', 16);
      report(await outcome(comm.broadcast(small)));
      report((await outcome(comm.allReduce(small))).code);
      const floats = DeviceBuffer.alloc(own, 'float32', 4);
      report((await outcome(comm.allReduce(floats, { scale: 2 }))).code);
      let code;
      try { comm.allocShared('float32', 4); } catch (error) { code = error.code; }
      report(code);
      report((await outcome(comm.allReduce(new Float32Array(4)))).code);
      await comm.close();`,
      scripts.env(),
    ).ended;
    expect(ended).toMatchObject(well);
    const refused = [
      'ERR_UNSUPPORTED',
      'ERR_UNSUPPORTED',
      'ERR_UNSUPPORTED',
      'ERR_INVALID_ARG_TYPE',
    ];
    expect([...ended.reports].sort()).toEqual(
      ['done', ...refused].flatMap((one) => [one, one]).sort(),
    );
    scripts.expectNothingLeft();
  });

  it('ranks whose arrays are on GPUs meet ranks whose arrays are not', async (context) => {
    const mpirun = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      mpirun,
      2,
      `const first = Number(process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK) === 0;
      const comm = await Communicator.world({ backend: 'mpi', ...(first ? { gpu: 0 } : {}) });
      const values = Float32Array.of(1, 2, 3);
      const data = first ? DeviceBuffer.alloc(0, 'float32', 3) : values;
      if (first) await data.copyFrom(values);
      const sum = await comm.allReduce(data);
      report([...(first ? await sum.copyTo() : sum)]);
      await comm.close();`,
      scripts.env(),
    ).ended;
    expect(ended).toMatchObject({
      ...well,
      reports: [
        [2, 4, 6],
        [2, 4, 6],
      ],
    });
    scripts.expectNothingLeft();
  });
});
