// Ends a job whose starter was killed with SIGKILL and could not do it itself: its launcher, or who started that.
import { spawn } from 'node:child_process';

/*
 * The watchdog is a shell of its own session that holds the read end of a pipe. The starter alone holds the write
 * end, so the pipe closes when the starter is gone, however it went. A word before that means that all is well.
 * The mark, which holds the secret, comes through the pipe: an argument would show it to every user of the machine. $1 is the grace period,
 * $2 a folder that goes with the job, or nothing.
 */
const script = `
trap '' HUP INT TERM
IFS= read -r mark || exit 0
read -r word && exit 0
members() {
  grep -lsaF -f - /proc/[0-9]*/environ <<END | tr -dc '0-9\\n'
$mark
END
}
for pid in $(members); do kill -s TERM -- "-$pid" "$pid" 2>/dev/null; done
waited=0
while [ "$waited" -lt "$1" ] && [ -n "$(members)" ]; do sleep 1; waited=$((waited + 1)); done
for pid in $(members); do kill -s KILL -- "-$pid" "$pid" 2>/dev/null; done
[ -z "$2" ] || rm -rf -- "$2"
`;

/** What every shell can count to. */
const longestGrace = 2 ** 31 - 1;

export interface Watchdog {
  /** The job has ended in good order. */
  dismiss(): void;
}

/**
 * @param mark `NAME=VALUE` in the environment of each process of the job and of no other
 * @param graceMs how long its processes have between SIGTERM and SIGKILL
 * @param folder is removed when they are gone
 */
export function startWatchdog(mark: string, graceMs: number, folder = ''): Watchdog {
  const seconds = Math.ceil(Math.min(graceMs / 1000, longestGrace));
  // PATH alone: a launcher may itself be a rank of a job, and its watchdog must not pass for a member of that one.
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' };
  const child = spawn('/bin/sh', ['-c', script, 'gradlink-watchdog', String(seconds), folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env,
  });
  // Without a shell there is no watchdog, and everything else still works.
  child.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  child.stdin.write(`${mark}\n`);
  child.unref();
  return {
    dismiss: () => {
      child.stdin.end('done\n');
    },
  };
}
