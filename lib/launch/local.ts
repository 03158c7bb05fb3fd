// The launcher `local`: every rank is a child process on this host.
import { shareCores } from './cores.js';
import { jobVariable, type Launcher } from './job.js';

export const local: Launcher = {
  name: 'local',
  plan(job, jobId) {
    const shares = shareCores(job.workers, job.cores);
    // Communicator.world() reads these. Ranks follow launch order, and one host holds them all.
    return shares.map((cores, rank) => ({
      ...(cores === undefined ? {} : { cores }),
      label: String(rank),
      command: job.command,
      env: {
        ...job.env,
        [jobVariable]: jobId,
        GRADLINK_RANK: String(rank),
        GRADLINK_SIZE: String(job.workers),
        GRADLINK_LOCAL_RANK: String(rank),
        GRADLINK_LOCAL_SIZE: String(job.workers),
      },
    }));
  },
};
