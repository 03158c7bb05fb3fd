// The benchmark of a network's gradients through key-value stores: `gradlink measure` without its options and printing.
import { readJob } from '../../communicator/joining/job.js';
import { GradlinkError } from '../../errors.js';
import { parseDevices } from '../../kvstore/devices.js';
import type { KVStore } from '../../kvstore/kvstore.js';
import type { StoreTypeName } from '../../kvstore/types.js';
import { elementsOf, network as networkOf, type Network } from '../../models/index.js';
import { failedCase, waivedCase } from '../../results/case.js';
import type { CaseResult, EnvironmentInfo, IterationLine, Report } from '../../results/result.js';
import { integer } from '../../checks.js';
import { describeGpus } from '../machine/gpu-environment.js';
import { readMachine } from '../machine/gpus.js';
import { checkEvents, givenOptions, headOf, Steps, type RunEvents } from '../common-run.js';
import { openStore, timeStore, type BatchContext } from './batches.js';
import { drawGradients } from './gradients.js';
import { isShared, openStoreJob, type StoreJob } from './job.js';
import { measureGpuLimits, measureHostLimits, type StoreLimits } from './limit.js';
import { storeTable, type BatchOptions, type StoreOptions } from './store-options.js';

/** Further callbacks of store benchmarks. */
export interface StoreEvents extends RunEvents {
  /** Before any measurement: this build or machine lacks the store, and its case will be waived. */
  onUnavailable?(kvStore: string, reason: string): void;
  /** Before a store's first batch. */
  onStore?(kvStore: string, arrays: number, bytes: number): void;
  /** The mean of `display` batches. */
  onLine?(line: IterationLine): void;
}

/** The stores to time, by type: opened, or the reason why one is unavailable. */
class Stores implements AsyncDisposable {
  readonly unavailable = new Map<string, string>();
  private readonly open = new Map<string, KVStore>();

  /** Opens them in advance: NCCL takes seconds to start, so the opened store is also the timed one. */
  async openAll(given: Omit<BatchOptions, 'kvStore'>, types: readonly StoreTypeName[]) {
    for (const kvStore of types) {
      // All workers and servers join for each of these in order, so they are opened later.
      if (isShared(kvStore) && readJob() !== undefined) continue;
      // A repeated type is opened again for its second turn.
      if (this.open.has(kvStore)) continue;
      try {
        this.open.set(kvStore, await openStore({ ...given, kvStore }));
      } catch (error) {
        const codes: readonly string[] = ['ERR_UNSUPPORTED', 'ERR_BACKEND_UNAVAILABLE'];
        if (!(error instanceof GradlinkError) || !codes.includes(error.code)) throw error;
        this.unavailable.set(kvStore, error.message);
      }
    }
  }

  /** The opened store, for its first use. */
  take(kvStore: string): KVStore | undefined {
    const store = this.open.get(kvStore);
    this.open.delete(kvStore);
    return store;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.open.values()].map((store) => store.close()));
  }
}

/** On GPUs one worker measures while the others are idle. */
async function limitsOf(
  job: StoreJob,
  gpus: readonly number[] | null,
  environment: EnvironmentInfo,
  kvStores: readonly string[],
): Promise<StoreLimits> {
  if (gpus === null) return measureHostLimits(job, environment, kvStores);
  const unmeasured: StoreLimits = () => ({ copyBytesPerSecond: null, context: {} });
  const limits = job.rank === 0 ? await measureGpuLimits(gpus) : unmeasured;
  await job.barrier();
  return limits;
}

/** One store; its failure becomes its case. */
async function storeCase(
  options: BatchOptions,
  context: BatchContext,
  stores: Stores,
  tell: StoreEvents,
  steps: Steps,
): Promise<CaseResult> {
  const { kvStore, network, devices, dtype } = options;
  const parameters = { kvStore, network: network.name, devices: devices.length };
  const identity = { name: 'kvstore', parameters };
  const reason = stores.unavailable.get(kvStore);
  if (reason !== undefined) return waivedCase(identity, reason);
  tell.onStore?.(kvStore, network.parameters.length, network.bytes(dtype));
  try {
    const store = stores.take(kvStore) ?? (await openStore(options));
    return await timeStore(options, store, context, {
      onLine: (line) => tell.onLine?.(line),
      onBatch: () => {
        steps.advance();
      },
    });
  } catch (error) {
    return failedCase(identity, error);
  }
}

function defaultNetwork(): Network {
  return networkOf('resnet', { numLayers: 152, imageShape: [3, 224, 224], numClasses: 1000 });
}

/**
 * Measures stores; collective in a job. Unavailable stores are waived.
 *
 * @throws RangeError or TypeError with a code for invalid options
 * @throws GradlinkError ERR_UNSUPPORTED for an unknown type, ERR_TIMEOUT if workers are missing
 */
export async function run(options: StoreOptions = {}, events: StoreEvents = {}): Promise<Report> {
  checkEvents(events);
  const given = givenOptions(storeTable, options);
  const { kvStores, network = defaultNetwork(), warmup, batches } = given;
  integer(given.display, 'display', 1, batches);
  const { gpus, names: devices } = parseDevices(given.devices);
  await using job = await openStoreJob(kvStores);
  const tell = job.rank === 0 ? events : {};
  const run = { ...given, devices, network };
  await using stores = new Stores();
  await stores.openAll(run, kvStores);
  for (const [type, reason] of stores.unavailable) tell.onUnavailable?.(type, reason);
  const machine = gpus === null ? undefined : readMachine([...new Set(gpus)]);
  const head = headOf(
    'measure',
    given,
    { network: network.name },
    machine && describeGpus(machine.gpus),
  );
  tell.onStart?.(head, []);
  const limits = await limitsOf(job, gpus, head.environment, kvStores);
  const lengths = network.parameters.map(({ shape }) => elementsOf(shape));
  const gradients = drawGradients(given.dtype, lengths, devices.length, given.seed);
  const context = { gpus, gradients, limits, job };
  const steps = new Steps(tell, (warmup + batches) * (kvStores.length - stores.unavailable.size));
  const cases: CaseResult[] = [];
  for (const kvStore of kvStores) {
    const result = await storeCase({ ...run, kvStore }, context, stores, tell, steps);
    cases.push(result);
    tell.onCases?.([result]);
  }
  return { ...head, cases };
}
