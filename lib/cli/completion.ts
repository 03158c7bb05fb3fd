// `gradlink completion`: scripts that let a shell complete commands, options and their values.
import { Option, type Argument, type Command } from 'commander';

import { read, type Parser } from './parse.js';
import { choice } from '../options/kinds.js';
import type { Register } from './register.js';

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

const examples = `
Examples:
  $ gradlink completion bash > ~/.local/share/bash-completion/completions/gradlink
  $ gradlink completion zsh > ~/.zfunc/_gradlink        with ~/.zfunc in fpath, before compinit
  $ gradlink completion fish > ~/.config/fish/completions/gradlink.fish

Exit status: 0; 2 wrong usage.`;

/** One option or command, with the values that may follow it. */
interface Word {
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly values: readonly string[];
}

interface Completed {
  readonly name: string;
  readonly description: string;
  /** Subcommands, or what the first argument may be. */
  readonly values: readonly string[];
  readonly options: readonly Word[];
}

/** What a parser that has choices takes; other parsers take anything. */
function valuesOf(parsed: Option | Argument): readonly string[] {
  const { parseArg } = parsed;
  const choices = (parseArg as Partial<Parser<unknown>> | undefined)?.choices;
  return choices ?? [];
}

function wordOf(option: Option): Word {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    takesValue: option.required || option.optional,
    values: valuesOf(option),
  };
}

const help = new Option('-h, --help', 'print the help');

function completed(command: Command): Completed {
  const inner = command.commands.map((one) => one.name());
  return {
    name: command.name(),
    description: command.description(),
    values: [...inner, ...command.registeredArguments.flatMap(valuesOf)],
    options: [...command.options, ...command.commands.flatMap((one) => one.options), help]
      .filter(({ hidden }) => !hidden)
      .map(wordOf),
  };
}

/** For single quotes of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function bash(commands: readonly Completed[]): string {
  const cases = commands.map(({ name, values, options }) => {
    const valued = options
      .filter((option) => option.takesValue)
      .map(
        (option) =>
          `        ${option.flags.join('|')}) words=${quoted(option.values.join(' '))}; value=1 ;;`,
      );
    const all = [...values, ...options.flatMap(({ flags }) => flags)];
    return [
      `    ${name})`,
      `      words=${quoted(all.join(' '))}`,
      ...(valued.length > 0 ? ['      case "$previous" in', ...valued, '      esac'] : []),
      '      ;;',
    ].join('\n');
  });
  return `_gradlink() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} words='' value=0
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=${quoted([...commands.map(({ name }) => name), '--help', '--version'].join(' '))}
  else
    case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    esac
  fi
  # Without words of its own a value is most often a file, and so is what has no dash.
  [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ "\${#COMPREPLY[@]}" -eq 0 ] && { [ "$value" -eq 0 ] || [ -z "$words" ]; }; then
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _gradlink gradlink
`;
}

function zsh(commands: readonly Completed[]): string {
  return `#compdef gradlink\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;
}

function fishOption(name: string, { flags, description, takesValue, values }: Word): string {
  const spelled = flags.map((flag) =>
    flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
  );
  const value = takesValue ? (values.length > 0 ? ` -xa ${quoted(values.join(' '))}` : ' -r') : '';
  return `complete -c gradlink -n '__fish_seen_subcommand_from ${name}' ${spelled.join(' ')}${value} -d ${quoted(description)}`;
}

function fish(commands: readonly Completed[]): string {
  const lines = commands.flatMap(({ name, description, values, options }) => [
    `complete -c gradlink -f -n __fish_use_subcommand -a ${name} -d ${quoted(description)}`,
    ...(values.length > 0
      ? [
          `complete -c gradlink -n '__fish_seen_subcommand_from ${name}' -a ${quoted(values.join(' '))}`,
        ]
      : []),
    ...options.map((option) => fishOption(name, option)),
  ]);
  return `${lines.join('\n')}\n`;
}

const scripts: Readonly<Record<Shell, (commands: readonly Completed[]) => string>> = {
  bash,
  zsh,
  fish,
};

export const registerCompletion: Register = (program, io) => {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .argument('<shell>', shells.join(', '), read(choice(shells)))
    .addHelpText('after', examples)
    .action((shell: Shell) => {
      const all = program.commands.map(completed);
      const values = all.map(({ name }) => name);
      const description = 'print the help of a command';
      const helped = { name: 'help', description, values, options: [] };
      io.stdout.write(scripts[shell]([...all, helped]));
    });
};
