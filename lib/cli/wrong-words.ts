// What commander says of words that it does not know, in ours: short, and with the one that was meant.
import type { Command } from 'commander';

import { didYouMean } from '../nearest.js';

function optionsOf(command: Command): string[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long }) => long ?? []);
}

function commandsOf(command: Command): string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((one) => one.name());
}

/** What commander would print, `text`, of the words behind this command. */
export function inOurWords(text: string, command: Command): string {
  return text
    .replace(/^error: /, 'gradlink: ')
    .replace(/command-argument value ('.*') is invalid for argument '(.*)'\./, 'unknown $2 $1.')
    .replace(/unknown option '([^'=]*)(?:=.*)?'$/m, (_, name: string) => {
      return `unknown option '${name}'.${didYouMean(name, optionsOf(command))}`;
    })
    .replace(/unknown command '(.*)'$/m, (_, name: string) => {
      return `unknown command '${name}'.${didYouMean(name, commandsOf(command))}`;
    });
}

/**
 * Refuses an option as commander does.
 *
 * @param advice what to do instead; absent: the option that was meant
 */
export function unknownOption(command: Command, name: string, advice?: string): never {
  const more = advice === undefined ? '' : `. ${advice}`;
  command.error(`error: unknown option '${name}'${more}`, { code: 'commander.unknownOption' });
}
