// Keeps one process of a job that mpirun or srun started: runs it and sends its output and exit status to the launcher.
// Ends it with all its children when the launcher says so or is lost, or when our own parent is gone.
import { createHmac } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { hostname } from 'node:os';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

import { allowedCores, bindToCores } from './cores.js';
import { parseFrame, type Exit, type FrameType, type Hello } from './frames.js';
import { jobVariable, labelOf, launcherVariable, type Command, type ProcessPlan } from './job.js';
import { keeperCores, keeperGpu, workersHere, type KeptPlace } from './keeper-gpu.js';
import { processNetwork } from './library-network.js';
import { removeSegments, removeSession } from './leftovers.js';
import { keeperPlace, type KeeperPlace } from './keeper-place.js';
import { Line } from './line.js';
import type { Ending } from './members.js';
import { serverCommand } from './programs.js';
import { signalProcess } from './processes.js';
import { variablesOfRole, roleEnvVariable } from './role-env.js';
import { passedSignals, runJob } from './run-job.js';
import { firstNode, placeEnvironment } from './torchrun.js';
import { callFrom, loopbackAddress, readNetwork } from '../network.js';
import { after } from '../time.js';

type Env = Readonly<Record<string, string | undefined>>;

/** Marks the process and all its children. */
const keptVariable = 'GRADLINK_KEPT';
const connectTimeoutMs = 5000;
const betweenCallsMs = 100;
const retryTimeoutMs = 10_000;
const confirmTimeoutMs = 2000;
const parentPollMs = 500;
const failed = 1;

/** The connection to the job's launcher, after both sides have proved that they know its secret. */
interface Connection {
  readonly line: Line;
  readonly socket: Socket;
  readonly graceMs: number;
  readonly silenceMs: number;
  readonly localRank?: number;
  readonly localSize?: number;
  readonly localWorkers?: number;
  onFrame(type: FrameType): void;
}

function required(env: Env, name: string): string {
  const value = env[name] ?? '';
  if (value === '')
    throw new Error(`expected ${name} in the environment, as gradlink launch sets it`);
  return value;
}

/** The other end accepted the connection and closed it. */
class HungUp extends Error {}

function call(to: TcpNetConnectOpts, secret: string, place: number): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect(to);
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), connectTimeoutMs);
    let connection: Connection | undefined;
    socket.on('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'ECONNRESET' ? new HungUp('it hung up') : error);
    });
    socket.on('connect', () => {
      clearTimeout(timer);
    });
    socket.on('close', () => {
      clearTimeout(timer);
      reject(new HungUp('it hung up'));
    });
    const hello: Hello = { place, host: hostname(), pid: process.pid };
    const line = Line.answer(socket, secret, hello, (type, payload) => {
      if (connection !== undefined) {
        connection.onFrame(type);
        return;
      }
      const { graceMs, silenceMs, localRank, localSize, localWorkers } = parseFrame(payload) ?? {};
      if (typeof graceMs !== 'number' || typeof silenceMs !== 'number') {
        socket.destroy(new Error('it is another version of gradlink'));
        return;
      }
      connection = {
        line,
        socket,
        graceMs,
        silenceMs,
        ...(typeof localRank === 'number' && typeof localSize === 'number'
          ? { localRank, localSize }
          : {}),
        ...(typeof localWorkers === 'number' ? { localWorkers } : {}),
        onFrame: () => undefined,
      };
      resolve(connection);
    });
  });
}

/**
 * Tries the launcher's addresses in turn. If it hangs up, retries for a while: a launcher crowded by strangers may hang
 * up on a slow keeper.
 */
export async function callLauncher(env: Env, place: number): Promise<Connection> {
  const secret = required(env, jobVariable);
  const where = required(env, launcherVariable);
  const colon = where.lastIndexOf(':');
  const hosts = where.slice(0, colon).split(',');
  const port = Number(where.slice(colon + 1));
  const network = readNetwork(env);
  const failures = new Map<string, Error>();
  const giveUp = performance.now() + retryTimeoutMs;
  let left = hosts;
  for (;;) {
    for (const host of left) {
      try {
        return await call(callFrom(network, host, port), secret, place);
      } catch (error) {
        failures.set(host, error as Error);
      }
    }
    left = left.filter((host) => failures.get(host) instanceof HungUp);
    if (left.length === 0 || performance.now() > giveUp) break;
    await sleep(betweenCallsMs);
  }
  const tried = hosts.map((host) => `${host} (${failures.get(host)?.message ?? ''})`);
  throw new Error(
    `could not reach gradlink launch at ${tried.join(', ')}, port ${String(port)}; ${adviceFor(hosts, left)}`,
  );
}

function adviceFor(hosts: readonly string[], hungUp: readonly string[]): string {
  if (hungUp.length > 0)
    return `it hung up for ${String(retryTimeoutMs / 1000)} s: another program may be there, or others crowd it with connections`;
  return hosts.length === 1 && hosts[0] === loopbackAddress
    ? 'it expects this job on its own host only: name the hosts with -H'
    : 'a firewall must let it through';
}

/** Sends output as frames, with the launcher's backpressure. */
function frameWriter(line: Line, type: 'stdout' | 'stderr'): Writable {
  const { socket } = line;
  return new Writable({
    write(chunk: Buffer, _encoding, callback) {
      if (socket.destroyed) callback();
      else if (line.write(type, chunk)) callback();
      else {
        const go = (): void => {
          socket.off('drain', go).off('close', go);
          callback();
        };
        socket.on('drain', go).on('close', go);
      }
    },
  });
}

/** The process to start: the user's command, or a server. */
function planFor(
  command: Command,
  place: KeeperPlace & KeptPlace,
  env: Env,
  gpu: Readonly<Record<string, string>>,
): ProcessPlan {
  const workers = Number(required(env, 'GRADLINK_NUM_WORKERS'));
  const server = place.place >= workers;
  const index = server ? place.place - workers : place.place;
  const role = server ? 'server' : 'worker';
  // Passes PMI's descriptor on, which Node would close.
  const pmi = /^\d+$/.test(env.PMI_FD ?? '') ? [Number(env.PMI_FD)] : [];
  return {
    role,
    index,
    label: labelOf(role, index),
    command: server ? serverCommand() : command,
    env: {
      ...processNetwork(readNetwork(env), env),
      ...variablesOfRole(role, env),
      [keptVariable]: keptMark(env, place),
      GRADLINK_ROLE: role,
      ...(server
        ? { GRADLINK_SERVER_RANK: String(index) }
        : {
            ...gpu,
            ...placeEnvironment({
              rank: index,
              size: workers,
              localRank: place.localRank,
              localSize: workersHere(place, env),
            }),
            ...masterOf(env),
          }),
    },
    inherited: pmi,
  };
}

/** The first node of a Slurm step, for launchers that did not know the hosts. */
function masterOf(env: Env): Readonly<Record<string, string>> {
  const first = firstNode(env.SLURM_STEP_NODELIST);
  return env.MASTER_ADDR !== undefined || first === undefined ? {} : { MASTER_ADDR: first };
}

/**
 * Derived from the secret without revealing it: the mark is compared with other processes' environments and may be
 * printed.
 */
function keptMark(env: Env, { place }: KeeperPlace): string {
  return createHmac('sha256', required(env, jobVariable))
    .update(`gradlink mark of the kept process ${String(place)}`)
    .digest('hex');
}

/** Removes the variables that only keepers need, including those of the other role. */
function withoutKeepers(env: Env): Env {
  const own = [launcherVariable, roleEnvVariable];
  return Object.fromEntries(Object.entries(env).filter(([name]) => !own.includes(name)));
}

/** The daemon of Open MPI or MPICH that starts a job's processes on a host, one per job. */
const daemons = /^(orted|prted|hydra_pmi_prox)/;

/** Ends the daemon, which would wait for minutes for a launcher it cannot reach. */
function endDaemon(pid: number): void {
  try {
    if (daemons.test(readFileSync(`/proc/${String(pid)}/comm`, 'utf8')))
      signalProcess(pid, 'SIGTERM');
  } catch {
    // Already gone.
  }
}

function exitOf(ending: Ending | undefined): Exit {
  const pid = ending?.member.pid;
  return {
    ...(pid === undefined ? {} : { pid }),
    exitCode: ending?.exitCode ?? failed,
    what: ending?.what ?? 'did not end when asked to',
    manner: ending?.manner ?? 'exited',
  };
}

/**
 * Reports the exit to the launcher and waits until it has ended the other processes: mpirun would react to our own exit
 * at once, with SIGKILL.
 *
 * @returns whether the launcher confirmed
 */
async function report(connection: Connection, exit: Exit): Promise<boolean> {
  const { line, socket, graceMs } = connection;
  if (socket.destroyed) return false;
  const seen = await new Promise<boolean>((resolve) => {
    const done = (seen: boolean): void => {
      callOff();
      resolve(seen);
    };
    const callOff = after(2 * (graceMs + confirmTimeoutMs), () => {
      done(false);
    });
    connection.onFrame = (type) => {
      if (type === 'seen') done(true);
    };
    socket.on('close', () => {
      done(false);
    });
    line.write('exit', exit);
  });
  socket.destroy();
  return seen;
}

/**
 * Runs a process of the job to its end.
 *
 * @param command what a worker runs
 * @param env this process's environment, with its place and the launcher's address
 * @param signals emits SIGINT, SIGTERM, SIGHUP and the signals that are passed on
 * @returns 0 if the launcher confirmed the process's exit status, else that status
 * @throws Error if its rank is unknown or the launcher cannot be reached
 */
export async function keep(
  command: Command,
  env: Env,
  signals: Pick<NodeJS.Process, 'on'>,
): Promise<number> {
  const place = keeperPlace(env);
  if (place === undefined) throw new Error('expected to be started by mpirun or srun');
  const connection = await callLauncher(env, place.place);
  const { line, socket } = connection;
  const endings = new EventEmitter();
  const end = (): void => void endings.emit('SIGTERM', 'SIGTERM');
  const state: { silent: boolean; why?: string } = { silent: false };
  // A second request from the launcher ends it at once. mpirun and the kernel may repeat a signal for one end, so
  // signals do not count.
  connection.onFrame = (type) => {
    if (type === 'end') end();
  };
  const parent = process.ppid;
  const endOnce = (why: string): void => {
    if (state.why === undefined) end();
    state.why ??= why;
  };
  const watch = setInterval(() => {
    if (process.ppid !== parent)
      endOnce('was ended: the process that started it on its host is gone');
  }, parentPollMs);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    signals.on(signal, () => {
      endOnce(`was ended with ${signal} by the process that started it`);
    });
  for (const signal of passedSignals) signals.on(signal, () => endings.emit(signal, signal));
  socket.on('close', () => {
    endOnce(`was ended: ${line.trouble ?? 'the launcher is gone'}`);
  });
  line.watchSilence(connection.silenceMs, () => {
    state.silent = true;
    socket.destroy();
  });
  line.keepBeating(connection.silenceMs);
  try {
    // Binds ourselves: the process and its children inherit it from their start.
    const here = { ...place, ...connection };
    const share = keeperCores(here, env, allowedCores());
    if (share !== undefined) bindToCores(process.pid, share);
    const gpu = keeperGpu(here, env);
    if (gpu.warning !== undefined) line.write('stderr', Buffer.from(gpu.warning));
    const plan = planFor(command, here, env, gpu.variables);
    const { endings: how } = await runJob([plan], {
      mark: `${keptVariable}=${keptMark(env, place)}`,
      env: withoutKeepers(env),
      signals: endings,
      graceMs: connection.graceMs,
      workers: 1,
      tolerateWorkerLoss: false,
      // Reported at once: MPICH's mpirun may kill this keeper as soon as another rank reports.
      onEnding: (ending) => {
        const own = state.why === undefined && ending.exitCode !== 0;
        if (own && !socket.destroyed) line.write('died', exitOf(ending));
      },
      output: {
        stdout: frameWriter(line, 'stdout'),
        stderr: frameWriter(line, 'stderr'),
        tag: false,
        raw: true,
      },
    });
    const [ending] = how;
    const exit: Exit = {
      ...exitOf(ending),
      ...(state.why === undefined ? {} : { what: state.why, manner: 'ended' }),
    };
    // If the launcher knows the status, mpirun need not report it too.
    return (await report(connection, exit)) ? 0 : exit.exitCode;
  } finally {
    clearInterval(watch);
    socket.destroy();
    removeSegments(env, place.place);
    if (process.ppid !== parent) removeSession(env);
    if (state.silent) endDaemon(parent);
  }
}
