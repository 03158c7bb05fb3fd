// What the launcher's environment says about stores.
import { describe, expect, it } from 'vitest';

import { serverPlace, workerPlace } from '../../lib/kvstore/role.js';
import { errorWith } from '../support/errors.js';

const job = { GRADLINK_JOB: 'secret', GRADLINK_NUM_WORKERS: '3', GRADLINK_NUM_SERVERS: '2' };
const worker = { ...job, GRADLINK_ROLE: 'worker', GRADLINK_RANK: '1', GRADLINK_SIZE: '3' };
const server = { ...job, GRADLINK_ROLE: 'server', GRADLINK_SERVER_RANK: '1' };

describe('workers and servers', () => {
  it('of one host meet in its memory: workers first, then servers', () => {
    const place = { backend: 'shm', job: 'secret', workers: 3, servers: 2 };
    expect(workerPlace(worker)).toEqual({ ...place, rank: 1 });
    expect(serverPlace(server)).toEqual({ ...place, rank: 4 });
  });

  it('of several hosts meet over MPI, by their ranks in it', () => {
    const transport = { ...job, GRADLINK_TRANSPORT: 'mpi', OMPI_COMM_WORLD_SIZE: '5' };
    const place = { backend: 'mpi', job: 'secret', workers: 3, servers: 2 };
    const here = { ...transport, OMPI_COMM_WORLD_RANK: '2', OMPI_COMM_WORLD_LOCAL_SIZE: '5' };
    expect(workerPlace(here)).toEqual({ ...place, rank: 2 });
    expect(serverPlace({ ...transport, GRADLINK_SERVER_RANK: '0' })).toEqual({ ...place, rank: 3 });
  });

  it('of several hosts meet over TCP where there is no MPI, and know nothing of a launcher', () => {
    const torchrun = { RANK: '1', WORLD_SIZE: '3', MASTER_ADDR: 'node1', MASTER_PORT: '29500' };
    const over = { ...job, ...torchrun, GRADLINK_TRANSPORT: 'tcp' };
    const place = { backend: 'tcp', job: 'secret', workers: 3, servers: 2 };
    expect(workerPlace(over)).toEqual({ ...place, rank: 1 });
    expect(serverPlace({ ...server, GRADLINK_TRANSPORT: 'tcp' })).toEqual({ ...place, rank: 4 });
    expect(() => workerPlace({ ...over, GRADLINK_JOB: '' })).toThrow(
      errorWith('ERR_UNSUPPORTED', /2 servers.*GRADLINK_JOB/),
    );
  });

  it('that no launcher started are none', () => {
    expect(workerPlace({})).toBeUndefined();
    expect(() => serverPlace({ ...server, GRADLINK_JOB: '' })).toThrow(
      errorWith('ERR_UNSUPPORTED', /gradlink launch -s.*GRADLINK_JOB is not set/),
    );
    expect(() => serverPlace({ ...server, GRADLINK_NUM_SERVERS: '0' })).toThrow(/from 1 to/);
    for (const rank of ['x', '2', '']) {
      expect(() => serverPlace({ ...server, GRADLINK_SERVER_RANK: rank })).toThrow(
        errorWith('ERR_OUT_OF_RANGE', new RegExp(`0 to 1 .*GRADLINK_SERVER_RANK.*'${rank}'`)),
      );
    }
  });

  it('without servers still meet', () => {
    const alone = { GRADLINK_JOB: 'secret', GRADLINK_RANK: '0', GRADLINK_SIZE: '2' };
    expect(workerPlace(alone)).toMatchObject({ rank: 0, workers: 2, servers: 0 });
  });
});
