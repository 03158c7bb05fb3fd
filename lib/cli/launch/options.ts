// What `gradlink launch` was asked for, checked, as a job.
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import type { LaunchOptions } from './launch-table.js';
import { refuseVariables, serversOf } from './mxnet.js';
import { asUsage, UsageError } from '../usage-error.js';
import { checkFolder, makeFolders, makeOwnFolder, ownEntry } from '../../files/index.js';
import { allowedCores } from '../../launch/cores.js';
import { parseHostList, parseHostfile, place, type Host } from '../../launch/hosts.js';
import {
  jobVariable,
  launcherVariables,
  variablesOf,
  type Command,
  type JobSpec,
  type Launcher,
} from '../../launch/job.js';
import { launchers } from '../../launch/launchers.js';
import { meetingVariables } from '../../launch/torchrun.js';
import {
  chooseAddress,
  interfaceVariable,
  portsVariable,
  readNetwork,
  readPorts,
} from '../../network.js';
import { readInput } from '../../results/input-file.js';

type Env = Readonly<Record<string, string | undefined>>;

/** Any number of seconds; it stays one that JSON has. */
export const toMs = (seconds: number): number => Math.min(seconds * 1000, Number.MAX_VALUE);

/** A launcher may itself be a process of a job: what that one was told is not for the processes of this one. */
function withoutOuterJob(env: Env): Env {
  const own: readonly string[] =
    env[jobVariable] === undefined
      ? launcherVariables
      : [...launcherVariables, ...meetingVariables];
  return Object.fromEntries(Object.entries(env).filter(([name]) => !own.includes(name)));
}

/** @param named what the user named, if that is another: the folder of a restart is in it */
export function prepareDirectory(directory: string, named = directory): void {
  try {
    if (directory === named) makeFolders(directory);
    else makeOwnFolder(directory);
    accessSync(directory, constants.W_OK);
    checkFolder(directory);
    for (const name of readdirSync(directory)) {
      if (/^(?:(?:rank|server)-\d+|mpirun|srun)\.(?:out|err)$/.test(name))
        ownEntry(join(directory, name), 'file');
    }
  } catch (error) {
    throw UsageError.of(
      '--output-dir',
      'a directory to write to',
      `${directory} (${(error as Error).message})`,
    );
  }
}

/** bfrun's and horovodrun's -H has the hosts themselves. */
export const hasHostsThemselves = (file: string): boolean =>
  !existsSync(file) && !file.includes('/');

/** What is wrong with hosts, in the words of the command line. */
function ofHosts<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`--hostfile ${file}: ${(error as Error).message}.`);
  }
}

/**
 * The hosts that -H names, or those of its file.
 *
 * @throws UsageError
 */
export function namedHosts(file: string, mayBePort: boolean): readonly Host[] {
  return ofHosts(file, () =>
    hasHostsThemselves(file)
      ? parseHostList(file, mayBePort)
      : parseHostfile(readInput(file, 'a list of hosts'), mayBePort),
  );
}

/**
 * The host of each process, see {@link place}.
 *
 * @throws UsageError
 */
export function placedOn(
  file: string,
  job: Pick<JobSpec, 'workers' | 'servers'>,
  mayBePort: boolean,
): readonly string[] {
  const hosts = namedHosts(file, mayBePort);
  return ofHosts(file, () => place(job, hosts));
}

function readHosts(
  { hostfile: file = '', numWorkers: workers, launcher }: LaunchOptions,
  servers: number,
  note: Note,
): readonly string[] {
  if (hasHostsThemselves(file) && !/[:,]/.test(file)) {
    note(`-H ${file}: no file has that name, it is taken for a host`);
  }
  return placedOn(file, { workers, servers }, launcher === 'ssh');
}

/** Options that would be passed over in silence otherwise. */
function refuseMeaningless(launcher: Launcher, options: LaunchOptions): void {
  const given: readonly (readonly [string, boolean, readonly string[]])[] = [
    ['--hostfile', options.hostfile !== undefined, ['mpi', 'ssh', 'slurm']],
    ['--sync-dst-dir', options.syncDstDir !== undefined, ['mpi', 'ssh']],
    ['--remote-shell', options.remoteShell !== undefined, ['mpi', 'ssh']],
    ['--mpirun', options.mpirun !== undefined, ['mpi', 'ssh']],
    ['--launcher-arg', options.launcherArg !== undefined, ['mpi', 'ssh', 'slurm']],
    ['--tolerate-worker-loss', options.tolerateWorkerLoss === true, ['local']],
  ];
  for (const [name, there, names] of given) {
    if (there && !names.includes(launcher.name)) {
      throw new UsageError(`${name} applies to --launcher ${names.join(', ')} only.`);
    }
  }
  if (options.elastic === true && options.tolerateWorkerLoss === true) {
    throw new UsageError('--elastic and --tolerate-worker-loss cannot be combined.');
  }
  if (options.maxRestarts !== undefined && options.elastic !== true) {
    throw new UsageError('--max-restarts needs --elastic.');
  }
  if (launcher.needsHosts === true && options.hostfile === undefined) {
    throw new UsageError(`--launcher ${launcher.name} needs a hostfile (-H).`);
  }
  if (options.syncDstDir !== undefined && options.hostfile === undefined) {
    throw new UsageError('--sync-dst-dir needs a hostfile (-H).');
  }
  if (options.syncDstDir !== undefined && !options.syncDstDir.startsWith('/')) {
    throw UsageError.of('--sync-dst-dir', 'an absolute path', options.syncDstDir);
  }
}

/** What a shell would make of a command, nobody does here. */
function refuseShellWords([program, ...args]: Command): void {
  if (existsSync(program)) return;
  if (args.length === 0 && /\s/.test(program.trim())) {
    throw UsageError.of(
      'the command',
      "a program and its arguments as words of their own, without quotes around all of them, or bash -c 'COMMAND'",
      program,
    );
  }
  const [, variable] = /^([A-Za-z_]\w*)=/.exec(program) ?? [];
  if (variable !== undefined) {
    throw UsageError.of('the command', `a program, and --env ${variable}=VALUE before it`, program);
  }
}

/** What the two options set; they count above --env. */
function networkVariables({
  networkInterface,
  ports,
}: LaunchOptions): Readonly<Record<string, string>> {
  asUsage(() => chooseAddress(networkInterface, '--network-interface'));
  asUsage(() => readPorts(ports, '--ports'));
  return {
    ...(networkInterface === undefined ? {} : { [interfaceVariable]: networkInterface }),
    ...(ports === undefined ? {} : { [portsVariable]: ports }),
  };
}

type Note = (text: string) => void;

/**
 * @param note gets what was guessed
 * @throws UsageError; ERR_INVALID_ARG_VALUE for variables that choose a network which this host is not in
 */
export function readLaunch(
  command: Command,
  options: LaunchOptions,
  env: Env,
  note: Note,
): { readonly launcher: Launcher; readonly job: JobSpec } {
  const launcher = launchers[options.launcher];
  if (launcher === undefined) throw new Error(`launcher ${options.launcher} is not registered`);
  refuseMeaningless(launcher, options);
  refuseVariables(env);
  refuseShellWords(command);
  const servers = serversOf(options.numServers, options.numWorkers, command, note);
  const { hostfile, remoteShell, mpirun, syncDstDir } = options;
  const gpusPerWorker = options.gpusPerWorker ?? (options.gpuPerWorker === true ? 1 : undefined);
  const job: JobSpec = {
    command,
    workers: options.numWorkers,
    servers,
    env: { ...options.env, ...networkVariables(options) },
    roleEnv: { worker: options.envWorker ?? {}, server: options.envServer ?? {} },
    cores: options.bindTo === 'core' ? allowedCores() : [],
    ...(gpusPerWorker === undefined ? {} : { gpusPerWorker }),
    tolerateWorkerLoss: options.tolerateWorkerLoss === true,
    graceMs: toMs(options.grace),
    outerEnv: withoutOuterJob(env),
    starterArguments: options.launcherArg ?? [],
    ...(hostfile === undefined ? {} : { hosts: readHosts(options, servers, note) }),
    ...(remoteShell === undefined ? {} : { remoteShell }),
    ...(mpirun === undefined ? {} : { mpirun }),
    ...(syncDstDir === undefined ? {} : { directory: syncDstDir }),
  };
  readNetwork(variablesOf(job));
  return { launcher, job };
}
