// `npm run bench:gpu`: what the GPUs of this machine reach, each figure beside its limit, in one table. Of the checkout only.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

import type { Io } from '../../lib/cli/io.js';
import { main } from '../../lib/cli/main.js';
import { measured } from '../../lib/cli/measured-command.js';
import { addTable, givenOf, typedOf } from '../../lib/cli/parse.js';
import type { Register } from '../../lib/cli/register.js';
import {
  addReportOptions,
  ReportOutput,
  type ReportOptions,
} from '../../lib/cli/reports/report-output.js';
import { UsageError } from '../../lib/cli/usage-error.js';
import { gpuTable, run } from './gpu-run.js';
import { flatOptions } from '../../lib/measure/common-run.js';
import { native } from '../../lib/native/load.js';
import { packageFile } from '../../lib/package-folder.js';
import { gpuTool } from '../../lib/report/index.js';

const help = `
Exit status: 0 everything ran, 1 something failed, 2 wrong usage. A target that is missed is marked, and no failure.`;

const registerGpu: Register = (program, io, done, argv) => {
  const command = program
    .command('gpu')
    .description(
      'host-device copies, local copies, sums, an optimizer step, a store and NCCL, on the GPUs that are there',
    );
  addReportOptions(addTable(command, gpuTable))
    .addHelpText('after', help)
    .action(async (options: ReportOptions) => {
      const given = givenOf(gpuTable, options);
      const { gpu = 0 } = given;
      const present = native().gpuCount();
      if (gpu >= present && present > 0) {
        throw UsageError.of('--gpu', `below ${present}`, String(gpu));
      }
      const file = options.output ?? packageFile('build/bench-gpu.json');
      mkdirSync(dirname(file), { recursive: true });
      const output = new ReportOutput({ ...options, output: file }, io);
      const asked = {
        commandLine: argv,
        options: flatOptions({ ...typedOf(gpuTable, options), output: file }),
      };
      const after = (): Promise<void> => {
        io.stderr.write(`written: ${file}\n`);
        return Promise.resolve();
      };
      done(
        await measured({ tool: gpuTool, output, io, unit: 'parts', after }, (events) =>
          run({ ...given, asked }, events),
        ),
      );
    });
};

/** The commands that only the scripts of bench/ have, as {@link main} runs those of the package. */
export function benchMain(argv: readonly string[], io: Io): Promise<number> {
  return main(argv, io, { gpu: () => Promise.resolve(registerGpu) });
}
