// Forwards the output of a job's processes line by line, holding no more than a few lines.
import { createWriteStream, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

import { openOwnFile } from '../files/index.js';
import { LineSplitter, Room } from './line-splitter.js';
import type { Member } from './members.js';

const keptLines = 10;
const keptLength = 1000;
/** Lines of a terminal: a line with fewer lines after it is still visible. */
const inSight = 24;

const newline = Buffer.from('\n');
/** Memory for the unfinished lines of all processes together. */
const roomForLines = 64 << 20;

/** One output with several sources: applies backpressure to each and keeps their lines apart. */
class Gate {
  private readonly waiting = new Set<Readable>();
  /** The source of the unfinished line. */
  private unfinished: Readable | undefined;

  constructor(private readonly output: Writable) {}

  get blocked(): boolean {
    return this.waiting.size > 0;
  }

  end(): void {
    this.output.end();
  }

  /** Whether the output stands inside a line. */
  get midLine(): boolean {
    return this.unfinished !== undefined;
  }

  /** @param tag printed at the start of each line */
  write(data: Buffer, source: Readable, tag?: Buffer): void {
    const goesOn = this.unfinished === source;
    const before = this.unfinished !== undefined && !goesOn ? [newline] : [];
    const after = tag === undefined || goesOn ? [] : [tag];
    this.unfinished = data.at(-1) === newline[0] ? undefined : source;
    // A closed output (`… | head`) never drains; drop the data.
    if (this.output.destroyed) return;
    const whole =
      before.length + after.length > 0 ? Buffer.concat([...before, ...after, data]) : data;
    if (this.output.write(whole)) return;
    source.pause();
    if (this.waiting.size === 0) {
      const open = (): void => {
        for (const event of ends) this.output.off(event, open);
        for (const stream of this.waiting) stream.resume();
        this.waiting.clear();
      };
      for (const event of ends) this.output.on(event, open);
    }
    this.waiting.add(source);
  }
}

/** How a full output continues. */
const ends = ['drain', 'error', 'close'] as const;

/** Resolves once a stream is closed, at once if there is none. */
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
  /** Forward chunks unchanged: the reader splits them into lines. */
  readonly raw?: boolean;
  /** Called once for a file that can no longer be written. */
  readonly onLoss?: (file: string, error: Error) => void;
  /** Also write each process's output to this existing folder: rank-N.out, rank-N.err, server-N.out, server-N.err. */
  readonly directory?: string;
  /**
   * Sees each line of standard error first and takes progress lines; it is notified before any other line is written.
   */
  readonly progress?: {
    take(line: Buffer): boolean;
    clear(name: 'stdout' | 'stderr'): void;
  };
}

function fileStem({ role, index, label }: Member): string {
  if (role === undefined) return label;
  return `${role === 'server' ? 'server' : 'rank'}-${String(index)}`;
}

interface Kept {
  readonly text: string;
  /** Its number among the lines on the launcher's output; undefined if it went elsewhere. */
  readonly number: number | undefined;
}

export class JobOutput {
  private readonly gates: Readonly<Record<'stdout' | 'stderr', Gate>>;
  private readonly tails = new Map<string, Kept[]>();
  private readonly files: WriteStream[] = [];
  private readonly fileGates: Gate[] = [];
  private readonly sources: Promise<void>[] = [];
  private readonly room = new Room(roomForLines);
  private lost = false;
  /** Lines on the launcher's output so far. */
  private lines = 0;

  constructor(private readonly options: OutputOptions) {
    this.gates = { stdout: new Gate(options.stdout), stderr: new Gate(options.stderr) };
  }

  attach(member: Member, name: 'stdout' | 'stderr', source: Readable): void {
    const { tag, raw, directory, progress } = this.options;
    const { label } = member;
    const prefix = tag ? Buffer.from(`[${label}] `) : undefined;
    this.sources.push(closing(source));
    const tail = this.tails.get(label) ?? [];
    this.tails.set(label, tail);
    const ending = name === 'stdout' ? 'out' : 'err';
    const file =
      directory === undefined
        ? undefined
        : this.fileAt(join(directory, `${fileStem(member)}.${ending}`));

    const beside = name === 'stderr' || this.onOneTerminal;
    const onLine = (line: Buffer): void => {
      if (name === 'stderr' && progress?.take(line) === true) return;
      progress?.clear(name);
      this.gates[name].write(line, source, prefix);
      const length = line.at(-1) === newline[0] ? line.length - 1 : line.length;
      const text = line.toString('utf8', 0, Math.min(length, keptLength));
      if (beside) this.lines += 1;
      tail.push({ text, number: beside ? this.lines : undefined });
      if (tail.length > keptLines) tail.shift();
    };
    const lines = raw === true ? undefined : new LineSplitter(onLine, this.room);
    source.on('data', (chunk: Buffer) => {
      if (lines === undefined) onLine(chunk);
      else lines.write(chunk);
      file?.write(chunk, source);
    });
    source.on('error', () => undefined);
    source.on('close', () => {
      lines?.end();
      file?.end();
    });
  }

  /** A full disk must not fail the job, nor a file that cannot be created: the launcher has the output too. */
  private fileAt(path: string): Gate | undefined {
    const lost = (error: Error): void => {
      if (!this.lost) this.options.onLoss?.(path, error);
      this.lost = true;
    };
    try {
      const file = createWriteStream(path, { fd: openOwnFile(path) }).on('error', lost);
      this.files.push(file);
      const gate = new Gate(file);
      this.fileGates.push(gate);
      return gate;
    } catch (error) {
      lost(error as Error);
      return undefined;
    }
  }

  get midLine(): boolean {
    return this.gates.stderr.midLine;
  }

  /** Whether a slow reader or disk holds lines back. */
  get blocked(): boolean {
    return [this.gates.stdout, this.gates.stderr, ...this.fileGates].some(({ blocked }) => blocked);
  }

  /**
   * The rank in the last ERR_PEER_LOST that a process printed: that rank caused its failure. Ranks of a subgroup have
   * other numbers.
   */
  lostRank(label: string): number | undefined {
    const text = this.lastLines(label).join('\n');
    const [, rank] = /\bERR_PEER_LOST\b/.test(text) ? (/\brank:? (\d+)/.exec(text) ?? []) : [];
    return rank === undefined ? undefined : Number(rank);
  }

  lastLines(label: string): readonly string[] {
    return this.tails.get(label)?.map(({ text }) => text) ?? [];
  }

  /** The last lines, unless they are still visible on standard error. */
  unseenLines(label: string): readonly string[] {
    const tail = this.tails.get(label) ?? [];
    const seen = tail.every(({ number }) => number !== undefined && this.lines - number < inSight);
    return seen ? [] : this.lastLines(label);
  }

  /** Whether both outputs are the terminal. */
  private get onOneTerminal(): boolean {
    const { stdout, stderr } = this.options;
    return [stdout, stderr].every((output) => 'isTTY' in output && output.isTTY === true);
  }

  async ended(): Promise<void> {
    await Promise.all(this.sources);
  }

  async close(): Promise<void> {
    for (const file of this.files) file.end();
    await Promise.all(this.files.map(closing));
  }
}
