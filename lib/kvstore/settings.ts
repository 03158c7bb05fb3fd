// Settings of how pushes change values: optimizers and their states, rates, updaters, compression.
import { argumentError } from '../errors.js';
import type { NativeKVStore } from '../native/kvstore.js';
import { definitionOf, Optimizer } from '../optimizers/optimizer.js';
import { instanceOf, optionsObject } from '../checks.js';
import { dtypeNames } from '../tensor/dtype.js';
import type { StoreOperations } from './operations.js';
import { compressionKind, compressionNames, saveNames } from './store-options.js';
import type { GradientCompression, SaveStatesOptions } from './store-options.js';
import type { ServerCalls } from './server-calls.js';
import type { StoreBackend } from './types.js';
import { UpdaterCalls, type Updater } from './updater.js';

let toldHostSteps = false;

export class StoreSettings {
  readonly #native: NativeKVStore;
  readonly #operations: StoreOperations;
  /** Only for a store with servers. */
  readonly #servers: ServerCalls | undefined;
  readonly #stepsOnGpus: boolean;
  /** The optimizer's name; null without. */
  #optimizer: string | null = null;

  constructor(
    { native, stepsOnGpus }: StoreBackend,
    operations: StoreOperations,
    servers?: ServerCalls,
  ) {
    this.#native = native;
    this.#operations = operations;
    this.#servers = servers;
    this.#stepsOnGpus = stepsOnGpus;
  }

  /** Tells once of steps that the host takes in the place of the GPUs. After a change of the optimizer or the keys. */
  tellHostSteps(): void {
    if (!this.#stepsOnGpus || this.#optimizer === null || toldHostSteps) return;
    const takesAny = definitionOf(this.#optimizer).onGpus;
    const wide = this.#operations.keys.some(({ dtype }) => dtypeNames[dtype] === 'float64');
    if (takesAny && !wide) return;
    const whose = takesAny ? 'float64 keys' : this.#optimizer;
    toldHostSteps = true;
    process.emitWarning(
      `the host takes the steps of ${whose}, for which GPUs have no kernels: with each push sum and value go to the host, and the new value comes back`,
      { type: 'GradlinkWarning', code: 'GRADLINK_HOST_STEPS' },
    );
  }

  async setOptimizer(optimizer: Optimizer | null): Promise<void> {
    this.#operations.pending.assertOpen('setOptimizer');
    if (optimizer !== null) {
      instanceOf(optimizer, Optimizer, 'optimizer', 'an optimizer (new SGD() for example) or null');
    }
    const spec = optimizer === null ? null : optimizer.spec;
    const set = this.#operations.pending.inTurn(() => {
      this.#native.setOptimizer(spec);
      this.#operations.updater = undefined;
      this.#optimizer = spec?.name ?? null;
      this.tellHostSteps();
    });
    // Every server answers after it has the optimizer.
    await Promise.all([set, this.#servers?.settle('setOptimizer')]);
  }

  async setLearningRate(learningRate: number): Promise<void> {
    this.#operations.pending.assertOpen('setLearningRate');
    if (typeof learningRate !== 'number' || !Number.isFinite(learningRate)) {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'learningRate', 'a finite number', learningRate);
    }
    await this.#operations.pending.run('setLearningRate', [], () =>
      this.#native.setLearningRate(learningRate),
    );
  }

  async setUpdater(updater: Updater | null): Promise<void> {
    this.#operations.pending.assertOpen('setUpdater');
    if (updater !== null && typeof updater !== 'function') {
      throw argumentError('ERR_INVALID_ARG_TYPE', 'updater', 'a function or null', updater);
    }
    const calls = updater === null ? undefined : new UpdaterCalls(this.#operations.keys);
    await this.#operations.pending.inTurn(() => {
      this.#native.setUpdater(updater === null ? null : (calls?.wrap(updater) ?? null));
      this.#operations.updater = calls;
      this.#optimizer = null;
    });
  }

  async setGradientCompression(compression: GradientCompression): Promise<void> {
    this.#operations.pending.assertOpen('setGradientCompression');
    const given = optionsObject(compression, compressionNames, 'setGradientCompression');
    compressionKind(given, 'compression');
    const { type, threshold = 0.5 } = given;
    await this.#operations.pending.whenIdle(() => {
      this.#native.setCompression(type, threshold);
    });
  }

  async saveOptimizerStates(file: string, options: SaveStatesOptions | undefined): Promise<void> {
    this.#operations.pending.assertOpen('saveOptimizerStates');
    const dump = optionsObject(options, saveNames, 'saveOptimizerStates').dumpOptimizer ?? false;
    const save = (): Promise<void> | undefined => this.#native.saveStates(file, dump);
    await this.#operations.pending.run('saveOptimizerStates', [], save);
  }

  async loadOptimizerStates(file: string): Promise<void> {
    this.#operations.pending.assertOpen('loadOptimizerStates');
    const load = (): Promise<void> | undefined => this.#native.loadStates(file);
    await this.#operations.pending.run('loadOptimizerStates', [], load);
  }
}
