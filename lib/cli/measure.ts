// `gradlink measure`: MXNet's tools/bandwidth/measure.py, with the limit of the machine beside every figure.
import type { Command } from 'commander';

import { exitCodes, type Io } from './io.js';
import {
  addMeasureOptions,
  checkMeasure,
  chooseDevices,
  chooseStores,
  type MeasureOptions,
} from './measure-options.js';
import { version } from '../version.js';
import { ProgressBar } from './progress-bar.js';
import type { Register } from './register.js';
import { ReportOutput } from './report-output.js';
import { UsageError } from './usage-error.js';
import { readJob } from '../communicator/job.js';
import { GradlinkError } from '../errors.js';
import { KVStore } from '../kvstore/kvstore.js';
import type { StoreTypeName } from '../kvstore/types.js';
import { failedCase, waivedCase } from '../measure/case.js';
import { describeEnvironment } from '../measure/environment.js';
import { describeGpus } from '../measure/gpu-environment.js';
import { readMachine } from '../measure/p2p-machine.js';
import { isShared, openStoreJob, type StoreJob } from '../measure/store-job.js';
import {
  outcome,
  schemaVersion,
  type CaseResult,
  type EnvironmentInfo,
  type Report,
  type Scalar,
} from '../measure/result.js';
import { measureGpuLimits, measureHostLimits, type StoreLimits } from '../measure/store-limit.js';
import {
  drawGradients,
  runStore,
  type StoreRunContext,
  type StoreRunOptions,
} from '../measure/store-run.js';
import { native } from '../native.js';
import { arraysLine, iterationLine, optionsLine, reportSummary } from '../report/index.js';

/** The options with the values that are used, flat. */
function usedOptions(
  options: MeasureOptions,
  devices: readonly string[],
  stores: readonly string[],
): Record<string, Scalar> {
  const named = Object.entries(options) as [string, unknown][];
  return {
    ...Object.fromEntries(
      named.map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(',') : (value as Scalar),
      ]),
    ),
    gpus: options.gpus?.join(',') ?? null,
    devices: devices.join(','),
    kvStore: stores.join(','),
  };
}

/** Why this build or machine has no store of a type it knows by name; undefined where it has. */
async function whyUnavailable(
  type: StoreTypeName,
  devices: readonly string[],
): Promise<string | undefined> {
  try {
    const store = await KVStore.create(type, { devices });
    await store.close();
    return undefined;
  } catch (error) {
    const codes: readonly string[] = ['ERR_UNSUPPORTED', 'ERR_BACKEND_UNAVAILABLE'];
    if (error instanceof GradlinkError && codes.includes(error.code)) return error.message;
    throw error;
  }
}

/** The lines of one worker of a job, with a bar below them where that is wanted. */
class Progress {
  private readonly bar: ProgressBar;

  constructor(
    private readonly io: Io,
    wanted: boolean,
    batches: number,
    private readonly prints: boolean,
  ) {
    this.bar = new ProgressBar(io, prints && wanted ? batches : 0, 'batches');
  }

  advance(): void {
    this.bar.advance();
  }

  print(lines: readonly string[]): void {
    if (!this.prints) return;
    this.bar.clear();
    this.io.stderr.write(lines.map((line) => `${line}\n`).join(''));
  }

  stop(): void {
    this.bar.stop();
  }
}

interface Job {
  readonly stores: readonly StoreTypeName[];
  /** By type: why it cannot run here. */
  readonly unavailable: ReadonlyMap<string, string>;
  readonly run: Omit<StoreRunOptions, 'kvStore'>;
}

async function runStores(
  job: Job,
  context: StoreRunContext,
  progress: Progress,
): Promise<CaseResult[]> {
  const { stores, unavailable, run } = job;
  const cases: CaseResult[] = [];
  for (const kvStore of stores) {
    const identity = {
      name: 'kvstore',
      parameters: { kvStore, network: run.network.name, devices: run.devices.length },
    };
    const reason = unavailable.get(kvStore);
    if (reason !== undefined) {
      cases.push(waivedCase(identity, reason));
      continue;
    }
    if (stores.length > 1) progress.print([`store ${kvStore}`]);
    progress.print([arraysLine(run.network.parameters.length, run.network.bytes(run.dtype))]);
    try {
      const events = {
        onLine: (line: Parameters<typeof iterationLine>[0]): void => {
          progress.print([iterationLine(line)]);
        },
        onBatch: (): void => {
          progress.advance();
        },
      };
      cases.push(await runStore({ ...run, kvStore }, context, events));
    } catch (error) {
      cases.push(failedCase(identity, error));
    }
  }
  return cases;
}

/** On GPUs one worker measures, while nobody else uses them. */
async function limitsOf(
  job: StoreJob,
  gpus: readonly number[] | null,
  environment: EnvironmentInfo,
): Promise<StoreLimits> {
  if (gpus === null) return measureHostLimits(job, environment);
  const unmeasured: StoreLimits = () => ({ copyBytesPerSecond: null, context: {} });
  const limits = job.rank === 0 ? await measureGpuLimits(gpus) : unmeasured;
  await job.barrier();
  return limits;
}

async function measure(
  options: MeasureOptions,
  kvStoreGiven: boolean,
  argv: readonly string[],
  io: Io,
): Promise<number> {
  const { names: devices, gpus, byDefault } = chooseDevices(options);
  const stores = chooseStores(options, kvStoreGiven);
  const run = checkMeasure(options, devices, stores);
  const output = new ReportOutput(options, io);
  await using job = await openStoreJob(stores);
  const unavailable = new Map<string, string>();
  for (const type of stores) {
    // All workers and servers meet for each store, so that one to see whether there is one is not free.
    if (isShared(type) && readJob() !== undefined) continue;
    const reason = await whyUnavailable(type, devices);
    if (reason !== undefined) unavailable.set(type, reason);
  }
  const [only] = stores;
  const onlyReason = only === undefined ? undefined : unavailable.get(only);
  if (stores.length === 1 && onlyReason !== undefined)
    throw new UsageError(`--kv-store: ${onlyReason}.`);

  const used = usedOptions(options, devices, stores);
  const startedAt = new Date().toISOString();
  const batches = (run.warmup + run.batches) * (stores.length - unavailable.size);
  const progress = new Progress(io, options.progress === true, batches, job.rank === 0);
  try {
    if (byDefault) {
      progress.print([
        `No GPU is used and neither --cpus nor --devices was given: ${String(devices.length)} CPU devices.`,
      ]);
    }
    progress.print([optionsLine(used)]);
    const addon = native();
    const environment = describeEnvironment({
      simdLevel: addon.simdLevel(),
      threads: addon.numThreads(),
    });
    const limits = await limitsOf(job, gpus, environment);
    const gradients = drawGradients(run, options.seed);
    const context = { gradients, limits, job };
    const cases = await runStores({ stores, unavailable, run }, context, progress);
    const report: Report = {
      schemaVersion,
      run: {
        tool: 'measure',
        packageVersion: version,
        commandLine: argv,
        options: used,
        startedAt,
      },
      environment,
      ...(gpus === null ? {} : { gpus: describeGpus(readMachine([...new Set(gpus)]).gpus) }),
      cases,
    };
    if (output.showsText) progress.print(reportSummary(report));
    if (job.rank === 0) output.write(report);
    const { ok, error } = outcome(report);
    return error === 0 && ok > 0 ? exitCodes.ok : exitCodes.failure;
  } finally {
    progress.stop();
  }
}

export const registerMeasure: Register = (program, io, done, argv) => {
  const command = program
    .command('measure')
    .description(
      "time a network's gradients through a key-value store, as MXNet's tools/bandwidth/measure.py does",
    );
  addMeasureOptions(command).action(async (options: MeasureOptions, self: Command) => {
    const kvStoreGiven = self.getOptionValueSource('kvStore') !== 'default';
    done(await measure(options, kvStoreGiven, argv, io));
  });
};
