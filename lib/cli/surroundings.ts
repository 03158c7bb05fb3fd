// What a command does when its surroundings fail it: a reader that leaves, a terminal that goes, a disk that is full.
import { closeSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { isatty } from 'node:tty';

import { exitCodes, type Io } from './io.js';

/** Whoever read what we write is gone, and there is nobody to tell. EIO is a terminal's. */
function readerLeft({ code }: NodeJS.ErrnoException, isTerminal: boolean): boolean {
  return code === 'EPIPE' || code === 'ECONNRESET' || (code === 'EIO' && isTerminal);
}

/** A system's own word for an error: `no space left on device` of `ENOSPC: no space left on device, write`. */
export function plainReason({ message, code }: NodeJS.ErrnoException): string {
  return message.replace(`${code ?? ''}: `, '').replace(/, \w+(?: '.*')?$/, '');
}

/**
 * Errors of a stream end nothing. What a reader that left does not get is dropped in silence. What cannot be written for
 * another reason is dropped too, with one line about it, and the process ends with 1 where it would have ended with 0.
 */
function outlive(stream: NodeJS.WriteStream, name: string, process: NodeJS.Process): void {
  let told = false;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (told || readerLeft(error, stream.isTTY)) return;
    told = true;
    process.on('exit', () => {
      if ((process.exitCode ?? exitCodes.ok) === exitCodes.ok) process.exitCode = exitCodes.failure;
    });
    // Where standard error itself fails, nobody can be told.
    if (stream !== process.stderr) {
      process.stderr.write(
        `gradlink: cannot write ${name}: ${plainReason(error)}; what is missing there is lost\n`,
      );
    }
  });
}

/** Bit of SIGHUP in the masks of /proc. */
const hangUp = 1n;
/** O_WRONLY of the flags of /proc. */
const writeOnly = 1;
const accessMode = 3;

/**
 * Whether who started us wants us to outlive our terminal. A process ignores SIGHUP then from its start, but Node takes that
 * back before any of its programs runs. What is left to see: the shell that started us ignores it too, or the environment
 * or that shell's own command names `nohup`, or standard input or output are as nohup alone leaves them.
 */
export function outlivesTerminal(
  env: Io['env'],
  read: (path: string) => string = (path) => readFileSync(path, 'utf8'),
  link: (path: string) => string = (path) => readlinkSync(path),
): boolean {
  const seen = (look: () => boolean): boolean => {
    try {
      return look();
    } catch {
      return false;
    }
  };
  return (
    basename(env['_'] ?? '') === 'nohup' ||
    seen(() => /(?:^|[\s/\0])nohup\s/.test(read(`/proc/${String(process.ppid)}/cmdline`))) ||
    seen(() => {
      const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(read(`/proc/${String(process.ppid)}/status`));
      return mask !== null && (BigInt(`0x${mask[1]!}`) & hangUp) !== 0n;
    }) ||
    seen(() => {
      const flags = /^flags:\s*([0-7]+)$/m.exec(read('/proc/self/fdinfo/0'))?.[1] ?? '0';
      return (
        link('/proc/self/fd/0') === '/dev/null' && (parseInt(flags, 8) & accessMode) === writeOnly
      );
    }) ||
    [1, 2].some((descriptor) =>
      seen(() => basename(link(`/proc/self/fd/${descriptor}`)) === 'nohup.out'),
    )
  );
}

/** At its exit Node sets terminals right, and aborts where one is gone; it passes over descriptors that are closed. */
function leaveTerminals(process: NodeJS.Process): void {
  const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
  process.on('exit', () => {
    for (const descriptor of terminals) if (!isatty(descriptor)) closeSync(descriptor);
  });
}

/** The process as commands see it. */
export function surroundings(process: NodeJS.Process): Io {
  outlive(process.stdout, 'standard output', process);
  outlive(process.stderr, 'standard error', process);
  leaveTerminals(process);
  if (!outlivesTerminal(process.env)) return process;
  // Without a listener the signal would end us.
  process.on('SIGHUP', () => undefined);
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    on: (signal, listener) => signal !== 'SIGHUP' && process.on(signal, listener),
    off: (signal, listener) => signal !== 'SIGHUP' && process.off(signal, listener),
  };
}
