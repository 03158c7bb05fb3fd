// The command-line program: parses, runs one command, turns errors into messages and exit codes. Never exits itself.
import { Command, CommanderError, type Option } from 'commander';

import { commands, commandsFor, type Commands } from './commands.js';
import { fitted, helpLayout } from './terminal/help-text.js';
import { exitCodes, Interrupted, type Io, type Output } from './io.js';
import { version } from '../version.js';
import { ownSpelling } from './launch/spelling.js';
import { printableLines } from '../printable.js';
import { terminalWidth } from './terminal/terminal-width.js';
import { UsageError } from './usage-error.js';
import { inOurWords } from './wrong-words.js';

export { surroundings } from './surroundings.js';

const examples = `
Examples:
  $ gradlink doctor                                  what is here, what is missing, what to do
  $ gradlink measure --kv-store device               time a network's gradients through a key-value store
  $ gradlink collectives all_reduce -b 8 -e 128M -f 2 -n 4
  $ gradlink p2p --matrix                            what links GPUs have, and which is slow
  $ gradlink report run.json -o report.html          a page with charts of what --output run.json wrote
  $ gradlink models resnet --num-layers 50 --json
  $ gradlink compare before.json after.json          what got slower; exit status 1 when something did
  $ gradlink launch -n 4 node app.js

Exit status: 0 all well, 1 a wrong result or a failure, 2 wrong usage.
Run gradlink COMMAND --help for a command's options.`;

/**
 * The program with the command that was typed, or with all commands where none was.
 *
 * @param argv what was typed
 * @param done gets the exit code that a command comes to
 * @param table the commands there are
 */
export async function createProgram(
  io: Io,
  argv: readonly string[],
  done: (exitCode: number) => void,
  table = commands,
): Promise<Command> {
  const program = new Command('gradlink');
  program
    .description(
      'Collectives, a key-value store and bandwidth diagnostics, measured against the limit of the machine.',
    )
    .version(version, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .configureHelp({ ...helpLayout, optionDescription: describeOption })
    // What follows the command of `launch` belongs to that command.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(fitted(text, terminalWidth(io.stdout, io.env))),
      writeErr: (text) => void io.stderr.write(fitted(text, terminalWidth(io.stderr, io.env))),
      getOutHelpWidth: () => helpWidth(io.stdout, io.env),
      getErrHelpWidth: () => helpWidth(io.stderr, io.env),
    })
    // Its own know no other tool's names.
    .showSuggestionAfterError(false)
    .addHelpText('after', examples);
  for (const register of await commandsFor(argv, table)) register(program, io, done, argv.slice(1));
  for (const command of program.commands) {
    command.showHelpAfterError(`Run gradlink ${command.name()} --help for its options.`);
    for (const inner of command.commands) speakOurs(inner);
    speakOurs(command);
  }
  speakOurs(program);
  program.showHelpAfterError('Run gradlink --help for the commands.');
  return program;
}

/** Of `help mesure`: commander prints the help of all. */
function refuseUnknownHelp([first, name]: readonly string[], program: Command): void {
  if (first !== 'help' || name === undefined || name.startsWith('-')) return;
  if (name === 'help' || program.commands.some((command) => command.name() === name)) return;
  program.error(`error: unknown command '${name}'`, { code: 'commander.unknownCommand' });
}

function speakOurs(command: Command): void {
  command.configureOutput({
    outputError: (text, write) => {
      write(printableLines(inOurWords(text, command)));
    },
  });
}

/** Of a pipe or a file: a width that people read well. */
const widthOfFiles = 100;

function helpWidth(output: Output, env: Io['env']): number {
  const width = terminalWidth(output, env);
  return width === Infinity ? widthOfFiles : width;
}

/** Bytes as they are typed: 32M. */
function sizeText(bytes: number): string {
  const [unit, factor] =
    bytes % 2 ** 20 === 0 ? ['M', 2 ** 20] : bytes % 2 ** 10 === 0 ? ['K', 2 ** 10] : ['', 1];
  return `${String(bytes / factor)}${unit}`;
}

/** With the default as it would be typed: not `["float32"]`, nor 33554432 bytes. */
function describeOption(option: Option): string {
  const { flags, description, negate } = option;
  const value: unknown = option.defaultValueDescription ?? option.defaultValue;
  const isSize = typeof value === 'number' && value > 0 && flags.endsWith('<size>');
  const text = Array.isArray(value) ? value.join(',') : isSize ? sizeText(value) : value;
  const worth = typeof text === 'number' || (typeof text === 'string' && text !== '');
  return worth && !negate ? `${description} (default: ${String(text)})` : description;
}

/** The message with its code, and below it where the guide tells what to do. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  const help = 'help' in error && typeof error.help === 'string' ? `\nSee ${error.help}` : '';
  return `${error.message}${code}${help}`;
}

/**
 * Runs one command.
 *
 * @param argv arguments after the program's name: `['measure', '--cpus', '2']`
 * @param io `process`, or streams of a test
 * @param table the commands there are
 * @returns the exit code: 0, 1 for failures and wrong results, 2 for wrong usage, that of the launched job, or 128 and the
 *   number of the signal that ended it
 */
export async function main(
  argv: readonly string[],
  io: Io,
  table: Commands = commands,
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const done = (code: number): void => {
    exitCode = code;
  };
  // As it was in the first releases.
  const typed = argv[0] === '-V' ? ['--version'] : argv;
  const program = await createProgram(io, typed, done, table);
  try {
    refuseUnknownHelp(typed, program);
    await program.parseAsync(ownSpelling(typed, program, io.env), { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    }
    // What it says may come from a file, whose control characters would reach the terminal.
    const print = (text: string): void => void io.stderr.write(`${printableLines(text)}\n`);
    if (error instanceof UsageError) {
      print(`gradlink: ${error.message}`);
      return exitCodes.usage;
    }
    print(`gradlink: ${describe(error)}`);
    if (io.env.GRADLINK_DEBUG !== undefined && error instanceof Error) print(error.stack ?? '');
    return error instanceof Interrupted ? error.exitCode : exitCodes.failure;
  }
}
