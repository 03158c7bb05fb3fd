// The styles of `gradlink train` that start jobs: ElasticDL's over numbers of workers, and both over a plan.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import type { Command } from 'commander';

import { endingSignals, Interrupted, type Io } from '../io.js';
import { ProgressBar } from '../progress/bar.js';
import { runTrainJob, withParameters, type TrainJob } from './job.js';
import { typedOf } from '../parse.js';
import { trainConfig, type OwnTrainOptions } from './train-options.js';
import { readPlan } from './plan.js';
import type { ProgressMessage } from '../progress/messages.js';
import { shown } from '../terminal/terminal.js';
import { makeFolders, makeOwnFolder, ownFile, writeOwnFile } from '../../files/index.js';
import { failedCase, waivedCase } from '../../results/case.js';
import { readReport } from '../../results/read-report.js';
import { hasMeasurement, type CaseIdentity, type CaseResult } from '../../results/result.js';
import { trainIdentity } from '../../measure/train/case.js';
import { csvText } from '../../report/csv.js';
import {
  elasticDlMarkdown,
  elasticDlRecords,
  elasticDlTable,
  gridMarkdown,
  gridRecords,
  gridRows,
  gridTable,
} from '../../report/train-tables.js';
import { trainTable } from '../../measure/train/train-options.js';
import type { GridCell, GridPlan, GridStyle } from '../../measure/train/plan.js';

/** Options that are about jobs or reports, not about one run. */
const notOfOneRun = ['workers', 'plan', 'launch-arg', 'output-dir', 'output', 'format', 'style'];

const longName = (flag: string | undefined): string => (flag ?? '').replace(/^--/, '');

/** The options that were given, as one run is to be given them. */
function givenArguments(command: Command): string[] {
  const values = typedOf(trainTable, command.opts());
  return command.options.flatMap((option) => {
    const name = option.attributeName();
    if (notOfOneRun.includes(longName(option.long))) return [];
    if (command.getOptionValueSource(name) !== 'cli') return [];
    const value = values[name];
    return value === true ? [option.long!] : [option.long!, String(value)];
  });
}

/** Stores with servers need one; a plan may name them without `kv:`. */
function serversOf(method: string): number {
  return /^(kv:)?dist_/.test(method) ? 1 : 0;
}

/**
 * The runs of a grid or a series, one after the other: which of how many, and which step of how many. Until it is stopped a
 * signal ends the run that it meets, or keeps the next from being started.
 */
class Runs {
  private readonly bar: ProgressBar;
  private done = 0;
  private received: NodeJS.Signals | undefined;
  private readonly note = (signal: NodeJS.Signals): void => {
    this.received ??= signal;
  };

  constructor(
    private readonly io: Io,
    count: number,
  ) {
    this.bar = new ProgressBar(io, count, 'runs', { parts: true });
    for (const signal of endingSignals) io.on(signal, this.note);
  }

  /**
   * @param place what the run is called
   * @param name what it is called in the bar
   */
  async run(job: TrainJob, place: string, name = place): Promise<CaseResult> {
    if (this.received !== undefined) throw new Interrupted(this.received);
    this.bar.clear();
    this.io.stderr.write(`gradlink train: ${place} …\n`);
    this.bar.show(this.done, name);
    const onProgress = ({ done, total, unit }: ProgressMessage): void => {
      this.bar.show(this.done, `${done}/${total} ${unit} of ${name}`, done / total);
    };
    const { io } = this;
    const measured = await runTrainJob(job, io, io.stderr.isTTY === true ? onProgress : undefined);
    this.done += 1;
    this.bar.advance();
    return measured;
  }

  /** One of them is not made: it was made before, or cannot be. */
  skip(): void {
    this.done += 1;
    this.bar.skip();
  }

  stop(): void {
    this.bar.stop();
    for (const signal of endingSignals) this.io.off(signal, this.note);
  }
}

/** A job of each size; the table is printed at the end. */
export async function runElasticDl(
  command: Command,
  options: OwnTrainOptions,
  io: Io,
  print: (text: string) => void,
): Promise<CaseResult[]> {
  const config = trainConfig(options);
  const scratch = mkdtempSync(join(tmpdir(), 'gradlink-train-'));
  const cases: CaseResult[] = [];
  const runs = new Runs(io, options.workers?.length ?? 0);
  try {
    for (const workers of options.workers ?? []) {
      const job: TrainJob = {
        workers,
        servers: serversOf(config.distOptimizer),
        launch: options.launchArg ?? [],
        train: [...givenArguments(command), '--style', 'elasticdl'],
        identity: trainIdentity(config, workers),
        reportFile: join(scratch, `${workers}.json`),
        logFile: join(scratch, `${workers}.log`),
        scratch,
      };
      cases.push(await runs.run(job, `${workers} worker${workers === 1 ? '' : 's'}`));
    }
  } finally {
    runs.stop();
    rmSync(scratch, { recursive: true, force: true });
  }
  print(`${shown((room) => elasticDlTable(cases, room), io)}\n`);
  return cases;
}

/** `2n4g/resnet50_b32_fp32_1`: DLPerf's names. */
function runFolder(cell: GridCell, model: string, batchSize: number, repeat: number): string {
  return join(`${cell.machines}n${cell.devices}g`, `${model}_b${batchSize}_fp32_${repeat}`);
}

/**
 * Each host has a slot for each device, and for the servers that it gets: those are dealt out from the last host, as
 * `gradlink launch` does, so that workers fill the slots of the devices.
 */
function hostList(hosts: readonly string[], devices: number, servers: number): string {
  return hosts
    .map((host, index) => {
      const fromLast = hosts.length - 1 - index;
      const own = Math.floor(servers / hosts.length) + (fromLast < servers % hosts.length ? 1 : 0);
      return `${host}:${devices + own}`;
    })
    .join(',');
}

function launchArguments(
  plan: GridPlan,
  cell: GridCell,
  servers: number,
  given: readonly string[],
): string[] {
  const { hosts, launcher, launch, timeoutSeconds } = plan;
  const used = hosts.slice(0, cell.machines);
  return [
    ...(timeoutSeconds === undefined ? [] : ['--timeout', String(timeoutSeconds)]),
    ...(used.length === 0
      ? []
      : ['--launcher', launcher, '-H', hostList(used, cell.devices, servers)]),
    ...launch,
    ...given,
  ];
}

/** Two names may be of one machine: its figures are not those of two. */
function onItsMachines(one: CaseResult, cell: GridCell, identity: CaseIdentity): CaseResult {
  const machines = hasMeasurement(one) ? one.values?.machines : undefined;
  if (machines === undefined || machines === cell.machines) return one;
  const expected = `expected ${cell.machines} machines with names of their own`;
  return failedCase(identity, new Error(`${expected}, got ${String(machines)}: see hosts`));
}

/** The case of a run that was made before with the same arguments; undefined where it is to be made. */
function finishedBefore(
  reportFile: string,
  commandFile: string,
  line: string,
): CaseResult | undefined {
  if (!existsSync(reportFile) || !existsSync(commandFile)) return undefined;
  if (readFileSync(commandFile, 'utf8') !== line) return undefined;
  try {
    const [measured] = readReport(reportFile).cases;
    return measured?.status === 'ok' ? measured : undefined;
  } catch {
    // It was being written when the run ended.
    return undefined;
  }
}

/** Of one run in the grid. */
interface GridRun extends GridCell {
  readonly model: string;
  readonly batchSize: number;
  readonly repeat: number;
}

function* runsOf(plan: GridPlan, otherwise: string): Generator<GridRun> {
  const models = plan.models.length > 0 ? plan.models : [otherwise];
  for (const model of models) {
    for (const batchSize of plan.batchSizes) {
      for (const cell of plan.cells) {
        for (let repeat = 1; repeat <= plan.repeats; ++repeat) {
          yield { ...cell, model, batchSize, repeat };
        }
      }
    }
  }
}

/** TianShu's table, as text, Markdown and CSV. */
function writeTianshu(folder: string, cases: readonly CaseResult[], target: number): string[] {
  const rows = gridRows(cases, target);
  writeOwnFile(join(folder, 'summary.md'), [gridMarkdown(rows, target)]);
  writeOwnFile(join(folder, 'summary.csv'), [csvText(gridRecords(rows))]);
  return gridTable(rows);
}

/** ElasticDL's table, as text, Markdown and CSV. */
function writeElasticDl(folder: string, cases: readonly CaseResult[]): string[] {
  writeOwnFile(join(folder, 'summary.md'), [elasticDlMarkdown(cases)]);
  writeOwnFile(join(folder, 'summary.csv'), [csvText(elasticDlRecords(cases))]);
  return elasticDlTable(cases);
}

/**
 * Runs the grid of a plan, each run in a folder of its own with its report and what it printed, and writes `summary.md`
 * and `summary.csv`. Runs that are there already are kept, so that a grid that was interrupted goes on.
 */
export async function runPlan(
  command: Command,
  options: OwnTrainOptions,
  style: GridStyle,
  folder: string,
  io: Io,
  print: (text: string) => void,
): Promise<CaseResult[]> {
  const plan = readPlan(options.plan ?? '', command, style, io);
  const all = [...runsOf(plan, String(command.getOptionValue('model')))];
  const cases: CaseResult[] = [];
  makeFolders(folder);
  for (const name of ['summary.md', 'summary.csv']) ownFile(join(folder, name));
  const runs = new Runs(io, all.length);
  try {
    for (const one of all)
      cases.push(await runCell(command, options, plan, style, one, folder, runs));
  } finally {
    runs.stop();
  }
  const table =
    style === 'tianshu' ? writeTianshu(folder, cases, plan.target) : writeElasticDl(folder, cases);
  print(`${table.join('\n')}\n`);
  return cases;
}

async function runCell(
  command: Command,
  options: OwnTrainOptions,
  plan: GridPlan,
  style: GridStyle,
  run: GridRun,
  folder: string,
  runs: Runs,
): Promise<CaseResult> {
  const { model, batchSize, repeat, ...cell } = run;
  const method = plan.options['dist-optimizer'] ?? String(command.getOptionValue('distOptimizer'));
  const where =
    style === 'tianshu'
      ? { machines: cell.machines, devicesPerMachine: cell.devices, repeat }
      : { repeat };
  const workers = cell.machines * cell.devices;
  const identity = { name: 'train', parameters: { model, batchSize, workers, ...where } };
  if (cell.machines > Math.max(1, plan.hosts.length)) {
    const given = plan.hosts.length;
    runs.skip();
    return waivedCase(identity, `needs ${cell.machines} machines, and hosts names ${given}`);
  }
  const name = runFolder(cell, model, batchSize, repeat);
  const own = join(folder, name);
  makeOwnFolder(dirname(own));
  makeOwnFolder(own);
  const train = [
    ...givenArguments(command),
    ...Object.entries(plan.options).flatMap(([name, value]) =>
      value === 'true' ? [`--${name}`] : [`--${name}`, value],
    ),
    ...['--style', style, '--model', model, '--batch-size', String(batchSize)],
    ...plan.measuring,
  ];
  const servers = Math.max(plan.servers, serversOf(method));
  const launch = launchArguments(plan, cell, servers, options.launchArg ?? []);
  const line = `${JSON.stringify({ workers, servers, launch, train })}\n`;
  const reportFile = join(own, 'report.json');
  const commandFile = join(own, 'command.json');
  for (const file of [reportFile, commandFile]) ownFile(file);
  const before = finishedBefore(reportFile, commandFile, line);
  if (before !== undefined) {
    runs.skip();
    return onItsMachines(withParameters(before, identity), cell, identity);
  }
  rmSync(reportFile, { force: true });
  writeOwnFile(commandFile, [line]);
  const logFile = join(own, 'output.log');
  const job: TrainJob = { workers, servers, launch, train, identity, reportFile, logFile };
  return onItsMachines(await runs.run(job, own, name), cell, identity);
}
