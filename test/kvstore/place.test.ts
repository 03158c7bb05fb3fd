// What the launcher's environment says about stores.
import { describe, expect, it } from 'vitest';

import { serverPlace, workerPlace } from '../../lib/kvstore/role.js';

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

  it('that no launcher started are none', () => {
    expect(workerPlace({})).toBeUndefined();
    expect(() => serverPlace({})).toThrow(/gradlink launch -s/);
    expect(() => serverPlace({ ...server, GRADLINK_NUM_SERVERS: '0' })).toThrow(/from 1 to/);
    expect(() => serverPlace({ ...server, GRADLINK_SERVER_RANK: 'x' })).toThrow(
      /GRADLINK_SERVER_RANK, got 'x'/,
    );
  });

  it('without servers still meet', () => {
    const alone = { GRADLINK_JOB: 'secret', GRADLINK_RANK: '0', GRADLINK_SIZE: '2' };
    expect(workerPlace(alone)).toMatchObject({ rank: 0, workers: 2, servers: 0 });
  });
});
