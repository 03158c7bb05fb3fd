// The launcher `local`: every rank is a child process on this host.
import { jobVariable, type Launcher } from './job.js';

export const local: Launcher = {
  name: 'local',
  plan(job, jobId) {
    // Communicator.world() reads these. Ranks follow launch order, and one host holds them all.
    return Array.from({ length: job.workers }, (_, rank) => ({
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
