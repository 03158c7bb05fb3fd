// The plan of a grid of runs, which may come from somebody else. All of it is checked before anything is made or started:
// it may say what is trained, where and how often, and not which files and programs are used.
import { Command, type Option } from 'commander';

import type { Io } from '../io.js';
import { registerLaunch } from '../launch/launch.js';
import { UsageError } from '../usage-error.js';
import { parseHostList } from '../../launch/hosts.js';
import { parsePlan, type GridPlan, type GridStyle } from '../../measure/train/plan.js';
import { readInput } from '../../results/input-file.js';

/** Of `gradlink train`: those that name no file. */
const ofTrain = [
  ...['dataset', 'image-size', 'sequence-length', 'vocabulary', 'num-classes'],
  ...['num-warmup-batches', 'num-batches-per-iter', 'num-iters', 'steps'],
  ...['optimizer', 'lr', 'dist-optimizer', 'mode', 'compression', 'bucket-cap-mb'],
  ...['disable-dynamic-topology', 'atc-style', 'seed', 'backend', 'allow-cpu', 'checkpoint-every'],
];

/** Of `gradlink launch`: those that say where on its host a process runs. */
const ofLaunch = ['--bind-to', '--gpus-per-worker', '--gpu-per-worker'];

/** @throws UsageError that says which entry is wrong, what it should be, and what belongs on the command line */
export function readPlan(file: string, train: Command, style: GridStyle, io: Io): GridPlan {
  try {
    const plan = parsePlan(readInput(file, 'a plan of runs'), ofTrain, style);
    const own = optionsOf(train);
    const launch = optionsOf(launchCommand(io));
    for (const [name, value] of Object.entries(plan.options)) valueOf(own(`--${name}`), value);
    valueOf(launch('--launcher'), plan.launcher);
    checkHosts(plan.hosts);
    checkLaunch(plan.launch, launch);
    // As the option has them: they become names of folders, and a choice takes other spellings too.
    const models = plan.models.map((name) => String(valueOf(own('--model'), name)));
    return { ...plan, models };
  } catch (error) {
    // Below an error of YAML itself stands the line it is in.
    const message = (error as Error).message.replace(/:\n.*|\.$/s, '');
    throw new UsageError(`--plan ${file}: ${message}.`);
  }
}

type Options = (name: string) => Option;

function launchCommand(io: Io): Command {
  const program = new Command().enablePositionalOptions();
  registerLaunch(program, io, () => undefined, []);
  return program.commands[0]!;
}

function optionsOf({ options }: Command): Options {
  return (name) => options.find(({ long }) => long === name)!;
}

/** What an option comes to, by its own rules: these words become arguments. */
function valueOf(option: Option, text: string): unknown {
  const got = `, got ${JSON.stringify(text)}`;
  const name = option.long!.slice(2);
  if (option.isBoolean()) {
    if (text !== 'true') throw new Error(`${name}: expected true${got}`);
    return true;
  }
  try {
    return option.parseArg === undefined ? text : option.parseArg<unknown>(text, undefined);
  } catch (error) {
    const expected = (error as Error).message.replace(/^E/, 'e').replace(/\.$/, '');
    throw new Error(`${name}: ${expected}${got}`);
  }
}

function checkLaunch(words: readonly string[], launch: Options): void {
  for (let at = 0; at < words.length; ++at) {
    const [, name = '', value] = /^([^=]*)(?:=(.*))?$/s.exec(words[at]!) ?? [];
    if (!ofLaunch.includes(name) || (launch(name).isBoolean() && value !== undefined)) {
      const expected = ofLaunch.map((one) => launch(one).flags).join(', ');
      throw new Error(
        `launch: expected ${expected}, got ${JSON.stringify(words[at])}. ` +
          'Other options of gradlink launch belong on the command line, each as --launch-arg=OPTION',
      );
    }
    if (!launch(name).isBoolean()) valueOf(launch(name), value ?? words[++at] ?? '');
  }
}

function checkHosts(hosts: readonly string[]): void {
  for (const host of hosts) {
    const [only, another] = parseHostList(host);
    if (only?.name !== host || another !== undefined)
      throw new Error(`hosts: expected a list of one name each, got ${JSON.stringify(host)}`);
  }
}
