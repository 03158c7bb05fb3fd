// Child processes of the runner: started together, ended together, their JSON lines collected.
import { spawn, spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';

/**
 * @typedef {{command: string, args: string[], env?: Record<string, string>, record?: (line: string) => object | undefined}} Program
 *   record: for programs that print no JSON, what a line of theirs says
 */

/** Whether a command of this name answers; what it asks for is harmless. */
export function answers(command, args = ['--version']) {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 60_000 }).status === 0;
}

// What ends this program ends it by exit, so that nothing is left: the children are in groups of their own.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
}

/** A job was ended because it had not ended by itself in time. */
export class LateError extends Error {}

/**
 * Runs programs that make up one job and returns the records they print, by default the lines that are JSON objects. A job that fails or is late is ended whole.
 * @param {Program[]} programs
 * @param {{timeoutMs: number, onRecord?: (record: object) => void}} options onRecord: gets each record as it comes, so that a
 *   job that fails later has not measured for nothing
 * @returns {Promise<object[]>}
 */
export async function runJob(programs, { timeoutMs, onRecord = () => {} }) {
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
  const timer = setTimeout(
    () => {
      late = true;
      endAll();
      // A longer one would fire at once.
    },
    Math.min(timeoutMs, 2 ** 31 - 1),
  );
  process.on('exit', endAll);
  try {
    const read = (i) => programs[i].record ?? recordOf;
    const take = (record) => {
      records.push(record);
      onRecord(record);
    };
    await Promise.all(children.map((child, i) => finished(child, read(i), take, endAll)));
  } catch (error) {
    if (late) {
      const message = `it took longer than ${Number((timeoutMs / 1000).toPrecision(3))} s`;
      throw new LateError(message, { cause: error });
    }
    throw error;
  } finally {
    clearTimeout(timer);
    process.off('exit', endAll);
    endAll();
  }
  return records;
}

const recordOf = (line) => (line.startsWith('{') ? JSON.parse(line) : undefined);

/** Frames of a stack without names, and what is around them. */
const noise = /^\s*$|^\[bt\]|^Stack trace/;

/** Resolves when the child ended well; collects what its lines say. */
async function finished(child, read, keep, endAll) {
  const errors = [];
  const take = (line) => {
    const record = read(line);
    if (record !== undefined) keep(record);
  };
  createInterface({ input: child.stdout }).on('line', take);
  createInterface({ input: child.stderr }).on('line', (line) => {
    errors.push(line);
    take(line);
  });
  await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) {
        resolve(undefined);
        return;
      }
      // A rank alone would wait for the ones that are gone.
      endAll();
      const said = errors
        .filter((line) => !noise.test(line))
        .slice(-5)
        .join('\n');
      reject(new Error(`${child.spawnfile} ended with ${signal ?? `status ${code}`}: ${said}`));
    });
  });
}
