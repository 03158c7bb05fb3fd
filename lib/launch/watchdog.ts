// Ends a job whose launcher, or the launcher's parent, was killed with SIGKILL.
import { spawn } from 'node:child_process';

/*
 * The watchdog is a shell in its own session that holds the read end of a pipe. Only the starter holds the write end,
 * so the pipe closes however the starter ends; a word before that means that all is well. The mark holds the secret and
 * comes through the pipe, because arguments are visible to every user. $1 is the grace period, $2 a folder to remove
 * with the job, or empty.
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

/** The largest number every shell can count to. */
const longestGrace = 2 ** 31 - 1;

export interface Watchdog {
  /** The job has ended as it should. */
  dismiss(): void;
}

/**
 * @param mark `NAME=VALUE` in the environment of each process of the job and of no other
 * @param graceMs milliseconds between SIGTERM and SIGKILL
 * @param folder removed after they have ended
 */
export function startWatchdog(mark: string, graceMs: number, folder = ''): Watchdog {
  const seconds = Math.ceil(Math.min(graceMs / 1000, longestGrace));
  // PATH only: a launcher may be a rank of another job, and its watchdog must not count as a member of it.
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' };
  const child = spawn('/bin/sh', ['-c', script, 'gradlink-watchdog', String(seconds), folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env,
  });
  // Without a shell there is no watchdog; the rest works.
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
