// What a command's file exports.
import type { Command } from 'commander';

import type { Io } from './io.js';

/**
 * Adds one command to the program; its action reports the exit code through `done`. `argv` is what was typed behind
 * the command's name, for the report.
 */
export type Register = (
  program: Command,
  io: Io,
  done: (exitCode: number) => void,
  argv: readonly string[],
) => void;
