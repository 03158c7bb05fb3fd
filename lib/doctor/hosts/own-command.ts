// Runs a command of this package as a process of this host and keeps its output.
import { spawn } from 'node:child_process';
import { cpus } from 'node:os';

import { allowedCores, bindToCores } from '../../launch/cores.js';
import { packageFile } from '../../package-folder.js';
import { after } from '../../time.js';

export interface Task {
  readonly args: readonly string[];
  /** Added to the environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The command is ended after this time. */
  readonly patienceMs: number;
}

export interface Ended {
  /** Null after a signal. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly ended: Promise<Ended>;
  stop(): void;
}

const mostStderr = 4000;
/** Between SIGTERM and SIGKILL. */
export const graceMs = 6000;

export function startOwn({ args, env, patienceMs }: Task, outer: NodeJS.ProcessEnv): Running {
  const child = spawn(process.execPath, [packageFile('bench/gradlink.js'), ...args], {
    env: { ...outer, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // A launcher may have bound our parent to some of the host's cores.
  const { length: cores } = cpus();
  if (child.pid !== undefined && allowedCores().length < cores) {
    bindToCores(
      child.pid,
      Array.from({ length: cores }, (_, core) => core),
    );
  }
  const stdout: Buffer[] = [];
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = `${stderr}${text}`.slice(-mostStderr);
  });
  const callOffs: (() => void)[] = [];
  const stop = (): void => {
    child.kill('SIGTERM');
    callOffs.push(after(graceMs, () => child.kill('SIGKILL')));
  };
  callOffs.push(
    after(patienceMs, () => {
      stderr += `it took more than ${String(patienceMs / 1000)} s`;
      stop();
    }),
  );
  const ended = new Promise<Ended>((resolve) => {
    const settle = (code: number | null): void => {
      for (const callOff of callOffs) callOff();
      resolve({ code, stdout: Buffer.concat(stdout).toString(), stderr });
    };
    child.on('error', ({ message }) => {
      stderr += message;
      settle(null);
    });
    child.on('close', settle);
  });
  return { ended, stop };
}
