// Copies the current folder to the hosts of a job (`--sync-dst-dir`).
import { spawn } from 'node:child_process';

import type { Command } from './job.js';

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The commands for each host, in order: create the folder, then fill it. Nothing is deleted there. */
export function syncCommands(host: string, remoteShell: string, directory: string): Command[] {
  const [shell = 'ssh', ...options] = remoteShell.split(/\s+/).filter((word) => word !== '');
  return [
    [shell, ...options, host, `mkdir -p ${quote(directory)}`],
    ['rsync', '--archive', '--compress', `--rsh=${remoteShell}`, './', `${host}:${directory}/`],
  ];
}

async function run([program, ...args]: Command): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  const status = await new Promise<string>((resolve) => {
    child.on('error', (error) => {
      resolve(error.message);
    });
    child.on('close', (code, signal) => {
      resolve(code === 0 ? '' : `it ended with ${String(code ?? signal)}`);
    });
  });
  if (status !== '') {
    throw new Error(`${[program, ...args].join(' ')}: ${[status, complaint.trim()].join('; ')}`);
  }
}

/**
 * @param hosts each once
 * @param remoteShell program and options, as `ssh -p 2222`
 * @param directory the target, created if missing
 * @throws Error with the failed command and its output
 */
export async function syncDirectory(
  hosts: readonly string[],
  remoteShell: string,
  directory: string,
): Promise<void> {
  await Promise.all(
    hosts.map(async (host) => {
      for (const command of syncCommands(host, remoteShell, directory)) await run(command);
    }),
  );
}
