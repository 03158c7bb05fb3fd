// Child processes of the runner: started together, ended together, their JSON lines collected.
import { spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';

/** @typedef {{command: string, args: string[], env?: Record<string, string>}} Program */

/** Whether a command of this name answers; what it asks for is harmless. */
export function answers(command, args = ['--version']) {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 60_000 }).status === 0;
}

/**
 * Runs programs that make up one job and returns the JSON lines they print. A job that fails or is late is ended whole.
 * @param {Program[]} programs
 * @param {{timeoutMs: number}} options
 * @returns {Promise<object[]>}
 */
export async function runJob(programs, { timeoutMs }) {
  const children = programs.map(({ command, args, env }) =>
    // Their own process group, so that what they start themselves ends with them.
    spawn(command, args, {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    }),
  );
  const endAll = () => {
    for (const { pid } of children) {
      try {
        if (pid !== undefined) process.kill(-pid, 'SIGKILL');
      } catch (error) {
        if (error.code !== 'ESRCH') throw error;
      }
    }
  };
  const records = [];
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    endAll();
  }, timeoutMs);
  const interrupted = () => {
    endAll();
    process.exit(130);
  };
  process.once('SIGINT', interrupted);
  try {
    await Promise.all(children.map((child) => finished(child, records, endAll)));
  } catch (error) {
    if (late) throw new Error(`it took longer than ${timeoutMs / 1000} s`, { cause: error });
    throw error;
  } finally {
    clearTimeout(timer);
    process.off('SIGINT', interrupted);
    endAll();
  }
  return records;
}

/** Resolves when the child ended well; collects the lines that are JSON objects. */
async function finished(child, records, endAll) {
  const errors = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('{')) records.push(JSON.parse(line));
  });
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) {
        resolve(undefined);
        return;
      }
      // A rank alone would wait for the ones that are gone.
      endAll();
      const said = errors.slice(-5).join('\n');
      reject(new Error(`${child.spawnfile} ended with ${signal ?? `status ${code}`}: ${said}`));
    });
  });
}
