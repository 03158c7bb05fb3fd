// Where the guides' command lines run: `npx gradlink` and `gradlink` are the checkout's.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = new URL('../../', import.meta.url).pathname;

/** Guides whose blocks are run one after the other, as they stand. */
export const walks: readonly string[] = ['docs/start.md', 'docs/compare.md', 'docs/predict.md'];

/** Puts the two commands into `bin` of a folder. */
export function installCommands(folder: string): void {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  // Of npx gradlink only gradlink. Whether two runs of a busy machine differ, and whether its sweep is smooth enough to
  // forecast sizes that were left out, is not what is tested: these two may end with 1.
  const npx = `#!/bin/sh
shift
node ${root}bench/gradlink.js "$@"
code=$?
case "$code $1 $2" in
  "1 compare "* | "1 predict --validate") exit 0 ;;
esac
exit "$code"
`;
  const gradlink = `#!/bin/sh\nexec ${bin}/npx gradlink "$@"\n`;
  for (const [name, text] of Object.entries({ npx, gradlink })) {
    writeFileSync(join(bin, name), text);
    chmodSync(join(bin, name), 0o755);
  }
}

/** The environment of commands in such a folder. */
export function walkEnvironment(folder: string): Readonly<Record<string, string | undefined>> {
  return {
    ...process.env,
    PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`,
    XDG_DATA_HOME: join(folder, 'data'),
    XDG_STATE_HOME: join(folder, 'state'),
  };
}
