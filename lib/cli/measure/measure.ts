// `gradlink measure`: MXNet's tools/bandwidth/measure.py, with the limit of the machine beside every figure.
import type { Command } from 'commander';

import type { Io } from '../io.js';
import {
  addMeasureOptions,
  checkMeasure,
  chooseDevices,
  chooseStores,
  type MeasureOptions,
} from './measure-options.js';
import { measured } from '../measured-command.js';
import type { Register } from '../register.js';
import { ReportOutput } from '../reports/report-output.js';
import { typedOf } from '../parse.js';
import { UsageError } from '../usage-error.js';
import { flatOptions } from '../../measure/common-run.js';
import { storeTable } from '../../measure/store/store-options.js';
import { run } from '../../measure/store/store-run.js';
import { arraysLine, iterationLine, storeTool } from '../../report/index.js';

/** The lines of a store come one by one, while it is measured. */
const tool = { ...storeTool, rows: () => [] };

async function measure(
  options: MeasureOptions,
  kvStoreGiven: boolean,
  argv: readonly string[],
  io: Io,
): Promise<number> {
  const kvStores = chooseStores(options, kvStoreGiven);
  const { byDefault, ...devices } = chooseDevices(options, kvStores);
  const batches = checkMeasure(options, devices, kvStores);
  const output = new ReportOutput(options, io);
  const asked = {
    commandLine: argv,
    options: flatOptions({
      ...typedOf(storeTable, options),
      gpus: devices.gpus?.join(',') ?? null,
      devices: devices.names.join(','),
      kvStore: kvStores.join(','),
    }),
  };
  const unit = options.progress === true ? 'batches' : undefined;
  return measured({ tool, output, io, unit, lines: io.stderr }, (events, print) =>
    run(
      { ...batches, kvStores, asked },
      {
        ...events,
        onStart(head, ranks) {
          if (byDefault !== null) print([byDefault]);
          events.onStart(head, ranks);
        },
        onUnavailable(_, reason) {
          if (kvStores.length === 1) throw new UsageError(`--kv-store: ${reason}.`);
        },
        onStore(kvStore, arrays, bytes) {
          if (kvStores.length > 1) print([`store ${kvStore}`]);
          print([arraysLine(arrays, bytes)]);
        },
        onLine(line) {
          print([iterationLine(line)]);
        },
      },
    ),
  );
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
