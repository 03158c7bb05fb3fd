// Ends a job whose launcher was killed with SIGKILL and could not do it itself.
import { spawn } from 'node:child_process';

import { jobVariable } from './job.js';

/*
 * The watchdog is a shell of its own session that holds the read end of a pipe. The launcher alone holds the write
 * end, so the pipe closes when the launcher is gone, however it went. A word before that means that all is well.
 * The secret comes through the pipe: an argument would show it to every user of the machine. $1 is the grace period.
 */
const script = `
trap '' HUP INT TERM
read -r job || exit 0
read -r word && exit 0
members() {
  grep -lsaF -f - /proc/[0-9]*/environ <<END | tr -dc '0-9\\n'
${jobVariable}=$job
END
}
for pid in $(members); do kill -s TERM -- "-$pid" "$pid" 2>/dev/null; done
waited=0
while [ "$waited" -lt "$1" ] && [ -n "$(members)" ]; do sleep 1; waited=$((waited + 1)); done
for pid in $(members); do kill -s KILL -- "-$pid" "$pid" 2>/dev/null; done
`;

export interface Watchdog {
  /** The job has ended in good order. */
  dismiss(): void;
}

/**
 * @param jobId the job's secret
 * @param graceMs how long its processes have between SIGTERM and SIGKILL
 */
export function startWatchdog(jobId: string, graceMs: number): Watchdog {
  // PATH alone: a launcher may itself be a rank of a job, and its watchdog must not pass for a member of that one.
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' };
  const child = spawn(
    '/bin/sh',
    ['-c', script, 'gradlink-watchdog', String(Math.ceil(graceMs / 1000))],
    {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env,
    },
  );
  // Without a shell there is no watchdog, and everything else still works.
  child.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  child.stdin.write(`${jobId}\n`);
  child.unref();
  return {
    dismiss: () => {
      child.stdin.end('done\n');
    },
  };
}
