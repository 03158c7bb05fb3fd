// What `launch` takes for granted where the user leaves it open: how many workers, and which launcher.
import { availableParallelism } from 'node:os';

import { mostWorkers, type LaunchOptions, type TypedOptions } from './launch-table.js';
import { hasHostsThemselves, namedHosts, placedOn } from './options.js';
import { UsageError } from '../usage-error.js';
import { allowedCores } from '../../launch/cores.js';
import { visibleGpus } from '../../launch/gpus.js';
import { isOwnHost } from '../../launch/own-host.js';
import { grantedCores } from '../../results/container-limits.js';

/** As many as can run at once: of a container that may have the time of fewer cores than it sees, those. */
function usableCores(): number {
  const seen = allowedCores().length || availableParallelism();
  return Math.max(1, Math.floor(Math.min(seen, grantedCores() ?? Infinity)));
}

type Env = Readonly<Record<string, string | undefined>>;
type Note = (text: string) => void;

/** @param launcher its name: `local` alone is sure to start all on this host */
function workersOf(typed: TypedOptions, launcher: string, env: Env, note: Note): number {
  const { numWorkers: asked, gpuPerWorker, gpusPerWorker } = typed;
  if (typeof asked === 'number') return asked;
  if (launcher !== 'local') {
    throw new UsageError(
      `-n ${asked} counts what this host has. With --launcher ${launcher} give the number of all workers.`,
    );
  }
  const { length: gpus } = visibleGpus(env);
  if (asked === 'gpu' && gpus === 0) {
    throw new UsageError('-n gpu: this host shows no GPU. Give a number, or auto for one a core.');
  }
  const each = gpusPerWorker ?? (gpuPerWorker === true ? 1 : undefined) ?? 1;
  const found = asked === 'gpu' ? Math.floor(gpus / each) : usableCores();
  const workers = Math.min(Math.max(found, 1), mostWorkers);
  const unit = asked === 'auto' ? 'a core' : each === 1 ? 'a GPU' : `for ${String(each)} GPUs`;
  note(`-n ${asked}: ${String(workers)} (one ${unit})`);
  return workers;
}

/**
 * Whether -H names this host and no other, and nothing is asked for that takes mpirun. A file may be a pipe, which can be
 * read once: it is left to whoever starts the job.
 */
function staysHere(typed: TypedOptions, hostfile: string): boolean {
  const { syncDstDir, remoteShell, mpirun, launcherArg = [] } = typed;
  const viaMpirun = [syncDstDir, remoteShell, mpirun, ...launcherArg];
  return (
    viaMpirun.every((one) => one === undefined) &&
    hasHostsThemselves(hostfile) &&
    namedHosts(hostfile, true).every(({ name }) => !name.includes('@') && isOwnHost(name))
  );
}

/**
 * With the launcher and the number of workers, where these were left open. Hosts are reached over ssh, but for this one
 * alone, which needs no hosts then.
 *
 * @param note gets what was guessed
 * @throws UsageError
 */
export function settled(typed: TypedOptions, env: Env, note: Note): LaunchOptions {
  const { hostfile, ...others } = typed;
  if (typed.launcher !== undefined || hostfile === undefined) {
    const launcher = typed.launcher ?? 'local';
    return { ...typed, launcher, numWorkers: workersOf(typed, launcher, env, note) };
  }
  const launcher = staysHere(typed, hostfile) ? 'local' : 'ssh';
  const where = launcher === 'local' ? 'is this host alone' : 'is reached over ssh';
  note(`-H ${hostfile} ${where} (--launcher ${launcher})`);
  const numWorkers = workersOf(typed, launcher, env, note);
  if (launcher === 'ssh') return { ...typed, launcher, numWorkers };
  // Its slots count all the same.
  placedOn(hostfile, { workers: numWorkers, servers: typed.numServers ?? 0 }, true);
  return { ...others, launcher, numWorkers };
}
