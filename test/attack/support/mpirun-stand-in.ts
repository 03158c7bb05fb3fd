// A program that passes for MPICH's mpirun and starts a job's keepers on this host, so that the launcher's port can be
// attacked where there is no MPI. One keeper's line goes through whoever writes a port into FOLDER/through.
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @returns the program; it writes the launcher's address to FOLDER/launcher */
export function standInMpirun(folder: string): string {
  const path = join(folder, 'mpirun.mjs');
  writeFileSync(
    path,
    `#!${process.execPath}
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
const folder = ${JSON.stringify(folder)};
const args = process.argv.slice(2);
if (args[0] === '--version') {
  console.log('HYDRA build details: a stand-in');
  process.exit(0);
}
const at = args.indexOf('-n');
const ranks = Number(args[at + 1]);
const [program, ...rest] = args.slice(at + 2);
const told = (name, text) => {
  writeFileSync(folder + '/new-' + name, text);
  renameSync(folder + '/new-' + name, folder + '/' + name);
};
told('launcher', process.env.GRADLINK_LAUNCHER);
while (!existsSync(folder + '/through')) await new Promise((go) => setTimeout(go, 5));
const through = '127.0.0.1:' + readFileSync(folder + '/through', 'utf8');
const statuses = await Promise.all(Array.from({ length: ranks }, (_, rank) => new Promise((done) => {
  const env = { ...process.env, PMI_RANK: String(rank) };
  if (rank === ranks - 1) env.GRADLINK_LAUNCHER = through;
  spawn(program, rest, { stdio: 'inherit', env }).on('exit', (code) => done(code ?? 1));
})));
process.exitCode = Math.max(...statuses);
`,
  );
  chmodSync(path, 0o755);
  return path;
}
