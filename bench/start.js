// What every script of this folder does: run the command-line program that `npm run build` put under dist/.
import { existsSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/**
 * @param {string} [command] the subcommand; none: the first argument names it, as `gradlink` does.
 * @param {string} [file] the program, where it is one of the checkout alone.
 */
export async function start(command, file = 'cli.js') {
  const program = new URL(`../dist/${file}`, import.meta.url);
  if (!existsSync(fileURLToPath(program))) {
    process.stderr.write(
      'gradlink: dist/ is missing, nothing is built yet. Run `npm run build` first.\n',
    );
    process.exitCode = 1;
    return;
  }
  const { main, surroundings } = await import(program.href);
  const argv = process.argv.slice(2);
  // exitCode and not exit(): native threads wind down first.
  process.exitCode = await main(
    command === undefined ? argv : [command, ...argv],
    surroundings(process),
  );
}
