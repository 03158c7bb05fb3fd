// `gradlink doctor` and `gradlink topo`: what is here, what is missing, how things are linked.
import { exitCodes, type Io } from './io.js';
import { version } from '../version.js';
import { addTable } from './parse.js';
import { list, text } from '../options/kinds.js';
import { optionTable, type ReadOf } from '../options/table.js';
import type { Register } from './register.js';
import {
  addOutputOptions,
  checkOutput,
  outputFormat,
  type OutputOptions,
} from './reports/report-output.js';
import { writeText } from './terminal/terminal.js';
import { writeFileAtomic } from '../files/index.js';
import { didYouMean } from '../nearest.js';
import { UsageError } from './usage-error.js';
import { diagnose, jobRank, topologyOf, type Finding } from '../doctor/index.js';
import { doctorLines, topologyLines } from '../report/doctor-lines.js';

const formats = ['text', 'json'] as const;
const byEnding = { '.txt': 'text', '.json': 'json' } as const;

type Output = OutputOptions<(typeof formats)[number]>;

const table = optionTable({
  require: {
    flag: '--require <names>',
    help: 'fail unless these are ok',
    kind: list(text()),
  },
  hostfile: {
    flag: '--hostfile <file>',
    help: 'look at the hosts of this file too, over ssh, and compare them',
    kind: text(),
  },
  remoteShell: {
    flag: '--remote-shell <command>',
    help: 'command that reaches them, such as "ssh -p 2222"',
    kind: text(),
  },
});

const doctorExamples = `
Prints a line for each part of the machine: ok, degraded (slower or less than it could be) or missing. The line says what
to do. Each library is tried in a process of its own, so that a driver that crashes or hangs is a line too. With --hostfile,
and as the command of gradlink launch, it compares hosts: their differences, hosts that cannot reach each other, clocks that
are off.

Examples:
  $ gradlink doctor
  $ gradlink doctor --json
  $ gradlink doctor --require nccl,gpu:0        in CI: fails unless both are ok
  $ gradlink doctor --hostfile hosts
  $ gradlink launch -n 4 --launcher ssh -H hosts gradlink doctor

Exit status: 0, or with --require 1 where one of the names is not ok; 2 wrong usage.`;

const topoExamples = `
NUMA nodes with their distances, network interfaces, GPUs, and the way from each GPU to each other as in
nvidia-smi topo -m: NV# (the number of NVLinks), PIX, PXB, PHB, NODE, SYS. Link speeds are those of one direction.

Examples:
  $ gradlink topo
  $ gradlink topo --json

Exit status: 0; 2 wrong usage.`;

/** A name may stand for several lines: gpu for every gpu:N. */
function required(findings: readonly Finding[], name: string): readonly Finding[] {
  const found = findings.filter((one) => one.name === name || one.name.startsWith(`${name}:`));
  // What a machine without a driver or a package has no line for is missing, not misspelt.
  if (
    found.length > 0 ||
    /^(nvml|nccl|gpus?|gpu:\d+|tfjs-node(-gpu)?|hostfile|hosts(:\w+)?)$/.test(name)
  )
    return found;
  const names = [...findings.map((finding) => finding.name), 'nvml', 'nccl', 'gpu', 'gpu:0'];
  const known = [...new Set(names)];
  const meant = didYouMean(name, known).trim();
  throw UsageError.of(
    '--require',
    `one of ${known.join(', ')}`,
    `'${name}'`,
    meant === '' ? undefined : meant,
  );
}

type Lines = (room?: number) => readonly string[];

/** Writes what was found where the options say; fails at once where that cannot be written. */
function writer({ format, output }: Output, io: Io): (found: object, lines: Lines) => void {
  if (output !== undefined) checkOutput(output);
  const asJson = outputFormat({ format, output }, byEnding, 'text') === 'json';
  return (found, lines) => {
    const text = (room?: number): string =>
      `${asJson ? JSON.stringify(found, null, 2) : lines(room).join('\n')}\n`;
    if (output === undefined) writeText(text, !asJson, io);
    else writeFileAtomic(output, [text()]);
  };
}

export const registerDoctor: Register = (program, io, done) => {
  const command = program
    .command('doctor')
    .description('what this machine has for gradlink, what is missing, and what to do');
  addOutputOptions(addTable(command, table), formats, 'findings and topology')
    .addHelpText('after', doctorExamples)
    .action(async (options: ReadOf<typeof table> & Output) => {
      const { require = [], hostfile, remoteShell } = options;
      if (remoteShell !== undefined && hostfile === undefined) {
        throw new UsageError('--remote-shell needs --hostfile.');
      }
      const write = writer(options, io);
      const { env } = io;
      const found = await diagnose({ packageVersion: version, env, hostfile, remoteShell });
      const wanting = require.filter((name) => {
        const lines = required(found.findings, name);
        return lines.length === 0 || lines.some(({ status }) => status !== 'ok');
      });
      // Of a job one rank speaks for all.
      if ((jobRank(env) ?? 0) === 0) write(found, (room) => doctorLines(found, room));
      for (const name of wanting) io.stderr.write(`gradlink: required, and not ok: ${name}\n`);
      done(wanting.length > 0 ? exitCodes.failure : exitCodes.ok);
    });
};

export const registerTopo: Register = (program, io, done) => {
  const command = program
    .command('topo')
    .description('how cores, memory, networks and GPUs are linked, and how fast');
  addOutputOptions(command, formats, 'the topology')
    .addHelpText('after', topoExamples)
    .action(async (options: Output) => {
      const write = writer(options, io);
      const topology = await topologyOf(io.env);
      write(topology, (room) => topologyLines(topology, room));
      done(exitCodes.ok);
    });
};
