// Jobs of workers and servers on this host, as processes: what `gradlink launch -n -s` starts, without the launcher, so
// that a test has each process in its hands.
import { join } from 'node:path';

import type { Ended, Running, Scripts } from '../support/processes.js';

const serve = (more: string): string => `
  import { serveJob } from ${JSON.stringify(join(import.meta.dirname, '../../dist/index.js'))};
  const stop = new AbortController();
  process.on('SIGTERM', () => stop.abort());
  await serveJob({
    signal: stop.signal,
    onCommand: (command, worker, head) => report({ worker, head, command }),
    onStore: (store) => report({ store }),
    ${more}
  }).catch((error) => {
    report(plain(error));
    process.exitCode = 1;
  });
`;

export interface Job {
  readonly workers: readonly Running[];
  readonly servers: readonly Running[];
  /** Resolves when the workers have ended, after which the servers were told to. */
  readonly ended: Promise<{ workers: Ended[]; servers: Ended[] }>;
}

export interface Size {
  readonly workers: number;
  readonly servers: number;
  /** The servers end by themselves, because a store fails: a signal could meet one that is exiting. */
  readonly serversFail?: boolean;
  /** More options of the servers' serveJob, as source. */
  readonly serving?: string;
}

let jobs = 0;

/** Every worker runs this script; `kv` is not made for it. */
export function startJob(
  scripts: Scripts,
  size: Size,
  source: string | readonly string[],
  env: Record<string, string> = {},
): Job {
  const common = {
    GRADLINK_JOB: `dist-test-${process.pid}-${jobs++}`,
    GRADLINK_NUM_WORKERS: String(size.workers),
    GRADLINK_NUM_SERVERS: String(size.servers),
    ...env,
  };
  const servers = Array.from({ length: size.servers }, (_, server) =>
    scripts.start(serve(size.serving ?? ''), {
      ...common,
      GRADLINK_ROLE: 'server',
      GRADLINK_SERVER_RANK: String(server),
    }),
  );
  const workers = Array.from({ length: size.workers }, (_, rank) =>
    scripts.start(typeof source === 'string' ? source : (source[rank] ?? ''), {
      ...common,
      GRADLINK_ROLE: 'worker',
      GRADLINK_RANK: String(rank),
      GRADLINK_SIZE: String(size.workers),
    }),
  );
  return { workers, servers, ended: end(workers, servers, size) };
}

async function end(
  workers: readonly Running[],
  servers: readonly Running[],
  { serversFail = false }: Size,
): Promise<{ workers: Ended[]; servers: Ended[] }> {
  const ofWorkers = await Promise.all(workers.map(({ ended }) => ended));
  if (!serversFail) for (const { child } of servers) child.kill('SIGTERM');
  return { workers: ofWorkers, servers: await Promise.all(servers.map(({ ended }) => ended)) };
}

/** Runs a job to its end. */
export function runJob(...args: Parameters<typeof startJob>): Job['ended'] {
  return startJob(...args).ended;
}

/** In every worker's script, after it made its store. */
export const helpers = `
  const filled = (length, value) => new Float32Array(length).fill(value);
  const same = (array, value) => array.every((one) => one === value);
`;
