// `gradlink baseline`: runs kept under a name, to compare with.
import type { Io } from '../io.js';
import { addTable } from '../parse.js';
import type { Register } from '../register.js';
import { shown } from '../terminal/terminal.js';
import { asUsage, UsageError } from '../usage-error.js';
import { Baselines } from '../../compare/index.js';
import { GradlinkError } from '../../errors.js';
import { flag } from '../../options/kinds.js';
import { optionTable, type ReadOf } from '../../options/table.js';
import { tableLines, type Column } from '../../report/index.js';

const examples = `
Baselines are folders of reports in $XDG_DATA_HOME/gradlink/baselines (~/.local/share unless set); which one is in use
stands in $XDG_STATE_HOME/gradlink (~/.local/state unless set).

Examples:
  $ gradlink collectives all_reduce -n 2 --output run.json
  $ gradlink baseline save release-1 run.json
  $ gradlink baseline use release-1
  $ gradlink baseline list

Exit status: 0; 2 wrong usage, no such baseline, or a file that is no report.`;

const example = (line: string): string => `\nExample:\n  $ gradlink baseline ${line}`;

const listTable = optionTable({ json: { flag: '--json', help: 'print JSON', kind: flag } });

const columns: readonly Column[] = [
  { title: 'in use', align: 'left' },
  { title: 'name', align: 'left' },
  { title: 'runs', align: 'right', weight: 3 },
  { title: 'cases', align: 'right', weight: 1 },
  { title: 'tool', align: 'left', weight: 2 },
  { title: 'started', align: 'left' },
];

/** What is wrong with a name or file, in the words of the command line. */
function checked<T>(act: () => T): T {
  try {
    return asUsage(act);
  } catch (error) {
    const unread =
      (error instanceof GradlinkError && error.code === 'ERR_SYSTEM') ||
      (error instanceof Error && 'syscall' in error);
    throw unread ? new UsageError(`${error.message}.`) : error;
  }
}

function printList(baselines: Baselines, json: boolean, io: Io): void {
  const list = checked(() => baselines.list());
  if (json) {
    io.stdout.write(`${JSON.stringify(list, null, 2)}\n`);
    return;
  }
  if (list.length === 0) {
    io.stdout.write('No baselines. gradlink baseline save NAME RUN.json keeps one.\n');
    return;
  }
  const rows = list.map(({ inUse, name, runs, cases, tool, startedAt }) => [
    inUse ? '*' : '',
    name,
    String(runs),
    String(cases),
    tool,
    startedAt,
  ]);
  io.stdout.write(`${shown((room) => tableLines(columns, rows, room), io)}\n`);
}

export const registerBaseline: Register = (program, io) => {
  const group = program
    .command('baseline')
    .description('keep runs under a name, for gradlink compare')
    .helpCommand(false)
    .addHelpText('after', examples);
  group
    .command('save')
    .description('keep runs of the same cases under a name, replacing those it had')
    .argument('<name>', 'letters, digits, dots, dashes and underscores')
    .argument('<runs...>', 'reports, written with --output RUN.json')
    .addHelpText('after', example('save release-1 runs/1.json runs/2.json runs/3.json'))
    .action((name: string, files: readonly string[]) => {
      checked(() => {
        new Baselines(io.env).save(name, files);
      });
    });
  addTable(group.command('list').description('names, with the one in use marked'), listTable)
    .addHelpText('after', example('list --json'))
    .action(({ json = false }: ReadOf<typeof listTable>) => {
      printList(new Baselines(io.env), json, io);
    });
  group
    .command('use')
    .description('take this one when gradlink compare is given one run only')
    .argument('<name>', 'of a baseline')
    .addHelpText('after', example('use release-1'))
    .action((name: string) => {
      checked(() => {
        new Baselines(io.env).use(name);
      });
    });
  group
    .command('remove')
    .description('forget one, with its runs')
    .argument('<name>', 'of a baseline')
    .addHelpText('after', example('remove release-1'))
    .action((name: string) => {
      checked(() => {
        new Baselines(io.env).remove(name);
      });
    });
};
