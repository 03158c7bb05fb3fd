// Passes the output of a job's processes on, line by line, without holding more of it than a few lines.
import { createWriteStream, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

import { openOwnFile } from '../files/index.js';
import { LineSplitter } from './line-splitter.js';
import type { Member } from './members.js';

const keptLines = 10;
const keptLength = 1000;

/** Stops the sources of a slow output until it has caught up; one listener whatever their number. */
class Gate {
  private readonly waiting = new Set<Readable>();

  constructor(private readonly output: Writable) {}

  get blocked(): boolean {
    return this.waiting.size > 0;
  }

  write(data: Buffer, source: Readable): void {
    // An output that is gone (`… | head`) never drains; what is written to it is dropped.
    if (this.output.destroyed || this.output.write(data)) return;
    source.pause();
    if (this.waiting.size === 0) {
      const open = (): void => {
        this.output.off('drain', open).off('close', open);
        for (const stream of this.waiting) stream.resume();
        this.waiting.clear();
      };
      this.output.on('drain', open).on('close', open);
    }
    this.waiting.add(source);
  }
}

/** Resolves once a stream is closed; at once where there is none. */
export async function closing(stream: Readable | Writable | null): Promise<void> {
  if (stream === null || stream.closed) return;
  await new Promise<void>((done) => {
    stream.once('close', done);
  });
}

export interface OutputOptions {
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Put `[label] ` before every line. */
  readonly tag: boolean;
  /**
   * Also write every process's output to files in this directory, which exists: rank-N.out and rank-N.err of workers,
   * server-N.out and server-N.err of servers.
   */
  readonly directory?: string;
  /** Sees each line of standard error first, and takes those that are for it; is told before any other is written. */
  readonly progress?: {
    take(line: Buffer): boolean;
    clear(name: 'stdout' | 'stderr'): void;
  };
}

function fileStem({ role, index, label }: Member): string {
  if (role === undefined) return label;
  return `${role === 'server' ? 'server' : 'rank'}-${String(index)}`;
}

/** A full disk must not take the job down with it, nor a file that cannot be made: the terminal still has everything. */
function streamInto(path: string): WriteStream | undefined {
  try {
    return createWriteStream(path, { fd: openOwnFile(path) }).on('error', () => undefined);
  } catch {
    return undefined;
  }
}

export class JobOutput {
  private readonly gates: Readonly<Record<'stdout' | 'stderr', Gate>>;
  private readonly tails = new Map<string, string[]>();
  private readonly files: WriteStream[] = [];
  private readonly sources: Promise<void>[] = [];

  constructor(private readonly options: OutputOptions) {
    this.gates = { stdout: new Gate(options.stdout), stderr: new Gate(options.stderr) };
  }

  /** Forwards one stream of a process. */
  attach(member: Member, name: 'stdout' | 'stderr', source: Readable): void {
    const { tag, directory, progress } = this.options;
    const { label } = member;
    const prefix = Buffer.from(tag ? `[${label}] ` : '');
    this.sources.push(closing(source));
    const tail = this.tails.get(label) ?? [];
    this.tails.set(label, tail);
    const ending = name === 'stdout' ? 'out' : 'err';
    const file =
      directory === undefined
        ? undefined
        : streamInto(join(directory, `${fileStem(member)}.${ending}`));
    if (file !== undefined) this.files.push(file);

    const lines = new LineSplitter((line) => {
      if (name === 'stderr' && progress?.take(line) === true) return;
      progress?.clear(name);
      this.gates[name].write(Buffer.concat([prefix, line]), source);
      tail.push(line.toString('utf8', 0, Math.min(line.length - 1, keptLength)));
      if (tail.length > keptLines) tail.shift();
    });
    source.on('data', (chunk: Buffer) => {
      lines.write(chunk);
      file?.write(chunk);
    });
    source.on('close', () => {
      lines.end();
      file?.end();
    });
  }

  /** Whether a slow reader of ours holds lines back. */
  get blocked(): boolean {
    return this.gates.stdout.blocked || this.gates.stderr.blocked;
  }

  /** The last lines that a process wrote to either stream. */
  lastLines(label: string): readonly string[] {
    return this.tails.get(label) ?? [];
  }

  /** Resolves once every stream has ended. */
  async ended(): Promise<void> {
    await Promise.all(this.sources);
  }

  /** Resolves once every file is written. */
  async close(): Promise<void> {
    for (const file of this.files) file.end();
    await Promise.all(this.files.map(closing));
  }
}
