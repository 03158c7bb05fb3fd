// Runs gradlink's commands as processes, each with settings of the stand-ins of its own: they are read once a process.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import type { Report } from '../../lib/results/result.js';

const root = join(import.meta.dirname, '../..');

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `node bench/SCRIPT ARGS` with these variables beside those of the test. */
export async function runScript(
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  if (!existsSync(join(root, 'dist/cli.js'))) {
    throw new Error('dist/ is missing: run "npm run build:ts" first');
  }
  return await runWith(process.execPath, [join(root, 'bench', script), ...args], env);
}

/** Any program, to its end. */
export const run = (command: string, ...args: string[]): Promise<Ended> => runWith(command, args);

export async function runWith(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => (stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  return await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      resolve({ code, signal, stdout, stderr });
    });
  });
}

/** The same with a report, which it must write. */
export async function reportOf(
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly report: Report }> {
  const { code, stdout, stderr } = await runScript(script, [...args, '--format', 'json'], env);
  if (stdout === '') throw new Error(`no report: ${stderr}`);
  return { code, report: JSON.parse(stdout) as Report };
}
