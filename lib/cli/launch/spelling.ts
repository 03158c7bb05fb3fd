// The options of `launch`, before the command that it starts, in our words. Commander would take one that it does not know
// for the command, and say of -n behind it that it is missing; a command never begins with a dash.
import type { Command, Option } from 'commander';

import { countsOneHost, insteadOf, sameAs } from './other-launchers.js';
import { unknownOption } from '../wrong-words.js';
import { visibleGpus } from '../../launch/gpus.js';

/** An option in our words, and whether the next word is its value. */
interface Spelt {
  readonly words: readonly string[];
  readonly takesNext: boolean;
  /** A count of one host's processes. */
  readonly ofOneHost?: true;
}

function valueFollows({ required, optional }: Option): boolean {
  return required || optional;
}

function ours(command: Command, name: string): Option | undefined {
  const options = command.createHelp().visibleOptions(command);
  return [...command.options, ...options].find(
    ({ short, long }) => name === short || name === long,
  );
}

type Env = Readonly<Record<string, string | undefined>>;

/** torchrun's `auto` is a process a GPU, where there are GPUs. */
function countOf(text: string, env: Env): string {
  if (text === 'auto' && visibleGpus(env).length > 0) return 'gpu';
  return text === 'cpu' ? 'auto' : text;
}

/** @throws CommanderError for an option that there is not; it names ours */
function spelt(command: Command, word: string): Spelt {
  const [, name = word, value] = /^(--?[^=]+)(?:=(.*))?$/s.exec(word) ?? [];
  const own = ours(command, name);
  if (own !== undefined) {
    return { words: [word], takesNext: value === undefined && valueFollows(own) };
  }
  const bare = name.replace(/^--?(?=.{2})/, '');
  const ofOneHost = countsOneHost(bare);
  const same = ofOneHost ? '-n' : sameAs(bare);
  if (same !== undefined) {
    return {
      words: value === undefined ? [same] : [same, value],
      takesNext: value === undefined,
      ...(ofOneHost ? { ofOneHost } : {}),
    };
  }
  const advice = insteadOf(bare);
  if (advice === undefined && /^-[^-]./.test(word)) {
    // A value may stand right behind the letter of its option: -n4.
    const short = ours(command, word.slice(0, 2));
    if (short !== undefined && valueFollows(short)) return { words: [word], takesNext: false };
  }
  return unknownOption(command, name, advice);
}

/**
 * `launch -np 4 --hosts a:2,b:2 node app.js` as `launch -n 4 -H a:2,b:2 node app.js`. What follows the command to start
 * stays as it is.
 */
export function ownSpelling(
  argv: readonly string[],
  program: Command,
  env: Env = process.env,
): readonly string[] {
  const [name = ''] = argv;
  const command = program.commands.find((one) => one.name() === 'launch');
  if (command === undefined || name !== 'launch') return argv;
  const own = [name];
  let oneHost: string | undefined;
  let at = 1;
  for (; at < argv.length && /^-./.test(argv[at]!) && argv[at] !== '--'; ++at) {
    const word = argv[at]!;
    const { words, takesNext, ofOneHost } = spelt(command, word);
    own.push(...words);
    if (takesNext && at + 1 < argv.length) own.push(argv[++at]!);
    if (ofOneHost !== true) continue;
    oneHost = word;
    own.push(countOf(own.pop()!, env));
  }
  const many = / (-H|--hostfile|--launcher(?![ =]local\b))/.test(own.join(' '));
  if (oneHost !== undefined && many) {
    const advice = 'It counts the processes of one host: with several say -n COUNT, all together.';
    unknownOption(command, oneHost.split('=')[0]!, advice);
  }
  return [...own, ...argv.slice(at)];
}
