// Jobs of workers and servers on this host, as processes: what `gradlink launch -n -s` starts, or whoever starts them by
// hand over TCP, without the launcher, so that a test has each process in its hands.
import { join } from 'node:path';

import type { Ended, Running, Scripts } from '../support/processes.js';
import { freePort, placeOf } from '../support/tcp.js';

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
  /** The servers end by themselves, as where a store fails: a signal could meet one that is exiting. */
  readonly serversEnd?: boolean;
  /** What starts each process where it is to run: the workers', then the servers'. */
  readonly hosts?: readonly (readonly string[])[];
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
  return start(scripts, size, source, env, (rank) => ({
    GRADLINK_RANK: String(rank),
    GRADLINK_SIZE: String(size.workers),
  }));
}

/** As startJob, with torchrun's variables and over TCP. No launcher ends the servers. */
export async function startTcpJob(
  scripts: Scripts,
  size: Size,
  source: string | readonly string[],
  env: Record<string, string> = {},
  address?: string,
): Promise<Job> {
  const port = await freePort();
  const ofRank = (rank: number): Env => placeOf(rank, size.workers, port, address);
  const { MASTER_ADDR, MASTER_PORT } = ofRank(0);
  const meeting = { MASTER_ADDR, MASTER_PORT, GRADLINK_TRANSPORT: 'tcp' } as Env;
  const all = { ...meeting, ...env };
  return start(scripts, { ...size, serversEnd: true }, source, all, ofRank);
}

type Env = Record<string, string>;

function start(
  scripts: Scripts,
  size: Size,
  source: string | readonly string[],
  env: Env,
  ofRank: (rank: number) => Env,
): Job {
  const common = {
    GRADLINK_JOB: `dist-test-${process.pid}-${jobs++}`,
    GRADLINK_NUM_WORKERS: String(size.workers),
    GRADLINK_NUM_SERVERS: String(size.servers),
    ...env,
  };
  const servers = Array.from({ length: size.servers }, (_, server) =>
    scripts.startUnder(size.hosts?.at(size.workers + server) ?? [], serve(size.serving ?? ''), {
      ...common,
      GRADLINK_SERVER_RANK: String(server),
    }),
  );
  const workers = Array.from({ length: size.workers }, (_, rank) =>
    scripts.startUnder(
      size.hosts?.at(rank) ?? [],
      typeof source === 'string' ? source : (source[rank] ?? ''),
      { ...ofRank(rank), ...common },
    ),
  );
  return { workers, servers, ended: end(workers, servers, size) };
}

async function end(
  workers: readonly Running[],
  servers: readonly Running[],
  { serversEnd = false }: Size,
): Promise<{ workers: Ended[]; servers: Ended[] }> {
  const ofWorkers = await Promise.all(workers.map(({ ended }) => ended));
  if (!serversEnd) for (const { child } of servers) child.kill('SIGTERM');
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

/** Two workers and two servers exchange keys, of which one is cut; six reports of each worker. */
export const exchanges = `
  ${helpers}
  const kv = await KVStore.create('dist_sync', { bigArrayBound: 1000 });
  await kv.init(['a', 'b'], [filled(10, kv.rank + 4), filled(200000, 0)]);
  const outs = [filled(10, 0), filled(200000, 0)];
  await kv.pull('a', outs[0]);
  report(same(outs[0], 4));
  for (let i = 0; i < 5; i++) {
    await kv.pushPull(['a', 'b'], [filled(10, i), filled(200000, kv.rank + i)], outs);
    report(same(outs[0], 2 * i) && same(outs[1], 2 * i + 1));
  }
`;

/** Pushes and pulls until it fails; says when it has begun. */
export const busy = (type: string): string => `
  ${helpers}
  const kv = await KVStore.create('${type}', { timeoutMs: 20000 });
  const outs = [filled(100, 0), filled(3000000, 0)];
  let rounds = 0;
  const failed = await outcome((async () => {
    await kv.init(['a', 'b'], [filled(100, 0), filled(3000000, 0)]);
    for (;;) {
      await kv.pushPull(['a', 'b'], [filled(100, 1), filled(3000000, 1)], outs);
      if (rounds++ === 1) say('begun');
    }
  })());
  report(failed);
  report((await outcome(kv.pull('a', outs[0]))).code);
  await kv.close();
`;

/** Nobody catches its error. */
export const fails = `
  ${helpers}
  const kv = await KVStore.create('dist_sync');
  await kv.init(['a', 'b'], [filled(100, 0), filled(3000000, 0)]);
  throw new Error('unforeseen');
`;
