// `gradlink build`: the addon, compiled on this machine.
import { exitCodes } from './io.js';
import { addTable } from './parse.js';
import { flag, whole } from '../options/kinds.js';
import { optionTable, type ReadOf } from '../options/table.js';
import { ProgressBar } from './progress/bar.js';
import type { Register } from './register.js';
import { compileAddon } from '../compile/addon.js';
import { shimPackages } from '../compile/tools.js';

const examples = `
Compiles the addon and its parts for Open MPI and MPICH from the sources in the package, with cmake-js. Needs a C++20
compiler, cmake and make, and says what is missing. The result goes into build/Release of the package and is used before
the prebuilt one, until the package is installed anew.

Only needed where no prebuilt addon fits: another processor, an older glibc, an MPI with another binary interface.

Examples:
  $ gradlink build
  $ gradlink build --jobs 1        on a machine with little memory

Exit status: 0 built, 1 it failed, 2 wrong usage.`;

const table = optionTable({
  jobs: {
    flag: '-j, --jobs <n>',
    help: 'compile this many files at once (default: the cores)',
    kind: whole({ min: 1 }),
  },
  keep: {
    flag: '--keep',
    help: 'leave sources and objects in build/compile of the package',
    kind: flag,
  },
});

export const registerBuild: Register = (program, io, done) => {
  const command = program.command('build').description('compile the addon on this machine');
  addTable(command, table)
    .addHelpText('after', examples)
    .action(async (options: ReadOf<typeof table>) => {
      const bar = new ProgressBar(io, 100, '%', { parts: true });
      let told = 0;
      try {
        const { addon, missingShims } = await compileAddon({
          ...options,
          env: io.env,
          onStep: (text) => void io.stderr.write(`gradlink build: ${text}\n`),
          onPercent: (percent) => {
            bar.show(percent);
            // Where there is no bar, a line now and then shows that it lives.
            if (io.stderr.isTTY === true || percent < told + 10) return;
            told = percent;
            io.stderr.write(`gradlink build: ${String(percent)} %\n`);
          },
        });
        bar.stop();
        for (const name of missingShims) {
          io.stderr.write(
            `gradlink build: built without ${name}; to add it: ${shimPackages[name]}, then run this again\n`,
          );
        }
        io.stdout.write(`${addon}\n`);
        done(exitCodes.ok);
      } finally {
        bar.stop();
      }
    });
};
