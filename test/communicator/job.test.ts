import { describe, expect, it } from 'vitest';

import { readJob } from '../../lib/communicator/joining/job.js';
import { errorWith } from '../support/errors.js';

const launch = { GRADLINK_JOB: 'secret', GRADLINK_RANK: '1', GRADLINK_SIZE: '4' };
const openMpi = {
  OMPI_COMM_WORLD_RANK: '2',
  OMPI_COMM_WORLD_SIZE: '3',
  OMPI_COMM_WORLD_LOCAL_SIZE: '3',
  PMIX_NAMESPACE: '712179713',
};
const pmi = { PMI_RANK: '0', PMI_SIZE: '2', MPI_LOCALNRANKS: '2' };
const slurm = { SLURM_PROCID: '3', SLURM_NTASKS: '8', SLURM_JOB_ID: '17', SLURM_STEP_ID: '0' };
const torchrun = {
  RANK: '5',
  WORLD_SIZE: '6',
  LOCAL_WORLD_SIZE: '6',
  MASTER_ADDR: 'localhost',
  MASTER_PORT: '29500',
};

describe('readJob', () => {
  it('finds no job where there is none', () => {
    expect(readJob({})).toBeUndefined();
    expect(readJob({ RANK: '0', WORLD_SIZE: '1' })).toBeUndefined();
    expect(readJob({ SLURM_PROCID: '0', SLURM_NTASKS: '4', SLURM_JOB_ID: '17' })).toBeUndefined();
  });

  it.each([
    ['gradlink launch', launch, 1, 4],
    ['Open MPI', openMpi, 2, 3],
    ['PMI (MPICH, Intel MPI)', pmi, 0, 2],
    ['Slurm', slurm, 3, 8],
    ['torchrun', torchrun, 5, 6],
  ])('reads the place that %s gives', (launcher, env, rank, size) => {
    expect(readJob(env)).toMatchObject({
      launcher,
      rank,
      size,
      job: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
    });
  });

  it('takes the first that speaks', () => {
    expect(readJob({ ...torchrun, ...slurm, ...openMpi, ...launch })?.launcher).toBe(
      'gradlink launch',
    );
    expect(readJob({ ...torchrun, ...slurm, ...openMpi })?.launcher).toBe('Open MPI');
    expect(readJob({ ...torchrun, ...slurm })?.launcher).toBe('Slurm');
  });

  it.each([
    [{ WORLD_SIZE: '2' }, 'RANK, MASTER_ADDR, MASTER_PORT'],
    [{ RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: '127.0.0.1' }, 'MASTER_PORT'],
    [{ RANK: '1', WORLD_SIZE: '2', MASTER_PORT: '29500', LOCAL_WORLD_SIZE: '2' }, 'MASTER_ADDR'],
    [{ RANK: '1', MASTER_ADDR: 'node1', MASTER_PORT: '29500' }, 'WORLD_SIZE'],
    [{ GRADLINK_RANK: '0', GRADLINK_SIZE: '2' }, 'GRADLINK_JOB'],
    [{ GRADLINK_SIZE: '2', GRADLINK_JOB: 'secret' }, 'GRADLINK_RANK'],
    [{ GRADLINK_RANK: '3', GRADLINK_JOB: 'secret' }, 'GRADLINK_SIZE'],
    [{ OMPI_COMM_WORLD_SIZE: '2' }, 'OMPI_COMM_WORLD_RANK'],
    [{ PMI_SIZE: '2' }, 'PMI_RANK'],
    [{ ...slurm, SLURM_PROCID: '' }, 'SLURM_PROCID'],
    [{ SLURM_PROCID: '3', SLURM_NTASKS: '8', SLURM_JOB_ID: '17' }, 'SLURM_STEP_ID'],
    // Names that only others read.
    [{ MV2_COMM_WORLD_SIZE: '2', MV2_COMM_WORLD_RANK: '0' }, 'WORLD_SIZE'],
    [{ HOROVOD_SIZE: '2', HOROVOD_RANK: '0' }, 'WORLD_SIZE'],
    [{ DMLC_ROLE: 'worker', DMLC_NUM_WORKER: '2' }, 'WORLD_SIZE'],
    [{ PMIX_RANK: '0' }, 'WORLD_SIZE'],
    // A step of one task, and half of what a launcher in it would say.
    [{ ...slurm, SLURM_PROCID: '0', SLURM_NTASKS: '1', WORLD_SIZE: '2' }, 'MASTER_PORT'],
  ])('refuses %j, half a place, and names what is missing', (env, missing) => {
    expect(() => readJob(env)).toThrow(errorWith('ERR_UNSUPPORTED', new RegExp(missing)));
  });

  it.each([
    [{ RANK: '-1', WORLD_SIZE: '2' }],
    [{ RANK: '-1', WORLD_SIZE: '2', MASTER_ADDR: 'node1', MASTER_PORT: '29500' }],
    [{ RANK: '3' }],
    [{ RANK: '-1', WORLD_SIZE: '-1' }],
    [{ WORLD_SIZE: '1' }],
    [{ MASTER_ADDR: 'node1', MASTER_PORT: '29500' }],
    [{ OMPI_COMM_WORLD_SIZE: '1' }],
    [{ HOROVOD_SIZE: '1' }],
    // A shell of salloc's, as a step of its own too, and a batch script.
    [{ SLURM_NTASKS: '4', SLURM_JOB_ID: '17', SLURM_NNODES: '2' }],
    [{ ...slurm, SLURM_PROCID: '0', SLURM_STEP_ID: '4294967290' }],
    [{ SLURM_PROCID: '0', SLURM_NTASKS: '4', SLURM_JOB_ID: '17' }],
    // As Open MPI leaves it in a process that joined alone.
    [{ PMIX_RANK: '0', OMPI_MCA_ess: 'singleton' }],
  ])('lets %j run alone', (env) => {
    expect(readJob(env)).toBeUndefined();
  });

  it('takes what torchrun says in a step that started torchrun', () => {
    const once = { ...torchrun, ...slurm, SLURM_PROCID: '0', SLURM_NTASKS: '1' };
    expect(readJob(once)).toMatchObject({ launcher: 'torchrun', size: 6 });
    const eachHost = { ...torchrun, ...openMpi, ...slurm, TORCHELASTIC_RUN_ID: '17' };
    expect(readJob(eachHost)).toMatchObject({ launcher: 'torchrun', size: 6 });
  });

  it('takes no server for a world of one', () => {
    const server = { GRADLINK_JOB: 'secret', GRADLINK_ROLE: 'server', GRADLINK_NUM_WORKERS: '2' };
    expect(() => readJob(server)).toThrow(errorWith('ERR_UNSUPPORTED', /servers.* 2 workers/));
  });

  it('takes addresses in brackets, and refuses at once what none can be', () => {
    const at = (address: string) => () => readJob({ ...torchrun, MASTER_ADDR: address })?.master;
    expect(at('[::1]')()?.address).toBe('::1');
    for (const good of ['fe80::1%eth0', '127.0.0.1', 'job-0.job', 'node_1', 'localhost']) {
      expect(at(good)()?.address).toBe(good);
    }
    for (const bad of ['127.0.0.1:29500', 'tcp://node1', '300.1.1.1', '[::1', 'a b', '[]']) {
      expect(at(bad)).toThrow(errorWith('ERR_INVALID_ARG_VALUE', /MASTER_ADDR/));
    }
  });

  it('gives equal jobs to ranks of one job only', () => {
    expect(readJob({ ...launch, GRADLINK_RANK: '3' })?.job).toBe(readJob(launch)?.job);
    expect(readJob({ ...launch, GRADLINK_JOB: 'other' })?.job).not.toBe(readJob(launch)?.job);
    expect(readJob({ ...slurm, SLURM_STEP_ID: '1' })?.job).not.toBe(readJob(slurm)?.job);
    for (const outer of [openMpi, pmi, slurm]) {
      // The launcher's secret, where it started mpirun or srun: their own names can be guessed.
      expect(readJob({ ...outer, GRADLINK_JOB: 'secret' })?.job).not.toBe(readJob(outer)?.job);
    }
  });

  it('takes MPI for jobs of more than one host', () => {
    const spread = [
      { ...openMpi, OMPI_COMM_WORLD_LOCAL_SIZE: '1' },
      { ...pmi, MPI_LOCALNRANKS: '1' },
      { ...slurm, SLURM_STEP_NUM_NODES: '2' },
    ];
    for (const env of spread) {
      expect(readJob(env)).toMatchObject({ backend: 'mpi', severalHosts: true });
    }
    for (const env of [launch, openMpi, pmi, slurm, torchrun]) {
      expect(readJob(env)).toMatchObject({ backend: 'shm', severalHosts: false });
    }
  });

  it('takes TCP for jobs of more than one host that are no MPI jobs', () => {
    const spread = readJob({ ...torchrun, LOCAL_WORLD_SIZE: '3', LOCAL_RANK: '2' });
    expect(spread).toMatchObject({
      backend: 'tcp',
      severalHosts: true,
      localRank: 2,
      master: { address: 'localhost', port: 29500 },
    });
    // Whoever starts ranks by hand may not say how many of them share a host.
    const pods = { ...torchrun, LOCAL_WORLD_SIZE: '' };
    expect(readJob({ ...pods, MASTER_ADDR: 'job-0.job' })).toMatchObject({ backend: 'tcp' });
    expect(readJob(pods)).toMatchObject({ backend: 'shm', severalHosts: false });
    // An srun that starts no MPI processes.
    const tasks = { ...slurm, SLURM_STEP_NUM_NODES: '2', MASTER_ADDR: 'node1', MASTER_PORT: '1' };
    expect(readJob(tasks)).toMatchObject({ backend: 'tcp' });
    expect(readJob({ ...tasks, PMIX_RANK: '3' })).toMatchObject({ backend: 'mpi' });
  });

  it('leaves the port to the store that torchrun has there', () => {
    const env = { ...torchrun, TORCHELASTIC_USE_AGENT_STORE: 'True' };
    expect(readJob(env)?.master).toEqual({ address: 'localhost', port: 29501 });
  });

  it('refuses jobs of more than one host that have nothing to meet over', () => {
    expect(() => readJob({ ...torchrun, LOCAL_WORLD_SIZE: '3', MASTER_ADDR: '' })).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED' }) as Error,
    );
  });

  it('counts the workers where the launcher starts servers over MPI', () => {
    const over = { ...openMpi, GRADLINK_TRANSPORT: 'mpi', GRADLINK_NUM_WORKERS: '2' };
    expect(readJob({ ...over, OMPI_COMM_WORLD_RANK: '1' })).toMatchObject({
      rank: 1,
      size: 2,
      backend: 'mpi',
      severalHosts: false,
      mpi: { size: 3 },
    });
    expect(() => readJob(over)).toThrow(
      errorWith('ERR_UNSUPPORTED', /process 2.*servers.* 2 workers/),
    );
    // The launcher's own ranks are no MPI processes.
    expect(readJob({ ...launch, GRADLINK_TRANSPORT: 'mpi' })?.backend).toBe('shm');
  });

  it('says which variable makes no sense', () => {
    expect(() => readJob({ ...launch, GRADLINK_RANK: '4' })).toThrow(
      errorWith('ERR_OUT_OF_RANGE', /0 to 3 .*GRADLINK_RANK.*'4'/),
    );
    expect(() => readJob({ ...launch, GRADLINK_SIZE: 'four' })).toThrow(
      errorWith('ERR_OUT_OF_RANGE', /GRADLINK_SIZE.*'four'/),
    );
  });

  it.each([
    [{ WORLD_SIZE: '0' }, 'WORLD_SIZE'],
    [{ WORLD_SIZE: '-2' }, 'WORLD_SIZE'],
    [{ WORLD_SIZE: 'two', RANK: '' }, 'WORLD_SIZE'],
    [{ WORLD_SIZE: '1.5', RANK: '0' }, 'WORLD_SIZE'],
    [{ ...torchrun, WORLD_SIZE: '0', RANK: '0' }, 'WORLD_SIZE'],
    [{ ...torchrun, LOCAL_WORLD_SIZE: '0' }, 'LOCAL_WORLD_SIZE'],
    [{ WORLD_SIZE: '1', RANK: 'one' }, 'RANK'],
    [{ GRADLINK_SIZE: '0', GRADLINK_JOB: 'secret' }, 'GRADLINK_SIZE'],
    [{ GRADLINK_RANK: '-1', GRADLINK_JOB: 'secret' }, 'GRADLINK_RANK'],
    [{ OMPI_COMM_WORLD_SIZE: '0' }, 'OMPI_COMM_WORLD_SIZE'],
    [{ PMI_SIZE: 'two' }, 'PMI_SIZE'],
    [{ ...slurm, SLURM_NTASKS: '0', SLURM_PROCID: '' }, 'SLURM_NTASKS'],
    [{ SLURM_PROCID: 'x', SLURM_JOB_ID: '17' }, 'SLURM_PROCID'],
    [{ ...slurm, SLURM_STEP_NUM_NODES: 'two' }, 'SLURM_STEP_NUM_NODES'],
    [{ HOROVOD_SIZE: '0' }, 'HOROVOD_SIZE'],
    [{ DMLC_NUM_WORKER: 'two' }, 'DMLC_NUM_WORKER'],
    // A step of one task, and what was set in it.
    [
      { ...torchrun, ...slurm, SLURM_PROCID: '0', SLURM_NTASKS: '1', WORLD_SIZE: '0' },
      'WORLD_SIZE',
    ],
  ])('takes %j for no world of one', (env, name) => {
    expect(() => readJob(env)).toThrow(errorWith('ERR_OUT_OF_RANGE', new RegExp(` ${name},`)));
  });
});
