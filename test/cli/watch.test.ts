import { EventEmitter } from 'node:events';
import { appendFileSync, existsSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';

import { describe, expect, it, vi } from 'vitest';

import { main } from '../../lib/cli/main.js';
import { followFile } from '../../lib/watch/follow.js';
import { gradlink } from '../support/cli.js';
import { folderOfEachTest } from '../support/folders.js';

let folder = '';
folderOfEachTest((made) => (folder = made));

/** A program that prints these lines and ends so. */
function program(lines: readonly string[], status = 0): string[] {
  const file = join(folder, 'run.mjs');
  writeFileSync(
    file,
    `${lines.map((line) => `console.log(${JSON.stringify(line)});`).join('\n')}\nprocess.exitCode = ${String(status)};\n`,
  );
  return [process.execPath, file];
}

describe('gradlink watch', () => {
  it('draws the figures of a command and passes its other lines on', async () => {
    const command = program(['starting', 'step 1 10 images/s', 'step 2 30 images/s']);
    const { code, stdout, stderr } = await gradlink(['watch', ...command]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^starting\n/);
    expect(stdout).toContain('throughput, images/s');
    expect(stdout).toContain('2 points, last 30, min 10,');
    // No terminal: nothing is erased.
    expect(stdout).not.toContain('\u001b');
    expect(stdout).not.toContain('step 1');
  });

  it("ends with the command's exit status", async () => {
    const { code, stdout } = await gradlink(['watch', ...program(['loss 1', 'loss 0.5'], 7)]);
    expect(code).toBe(7);
    expect(stdout).toContain('2 points');
  });

  it('a signal to it ends the command, and what came is drawn', async () => {
    const file = join(folder, 'endless.mjs');
    writeFileSync(file, "console.log('loss 2\\nready');\nsetInterval(() => undefined, 1e6);\n");
    const signals = new EventEmitter();
    const drawn: string[] = [];
    const out = new Writable({
      write(chunk, _, done) {
        drawn.push(String(chunk));
        if (String(chunk) === 'ready\n') signals.emit('SIGTERM');
        done();
      },
    });
    const code = await main(['watch', process.execPath, file], {
      stdout: out,
      stderr: out,
      env: process.env,
      on: signals.on.bind(signals),
      off: signals.off.bind(signals),
    });
    expect(code).toBe(128 + 15);
    expect(drawn.join('')).toContain('1 points, last 2');
    expect(signals.listenerCount('SIGTERM')).toBe(0);
  });

  it('says so when there is nothing to draw, or no such program', async () => {
    const silent = await gradlink(['watch', ...program(['hello'])]);
    expect(silent).toMatchObject({ code: 1, stdout: 'hello\n' });
    expect(silent.stderr).toContain('no figure');
    const absent = await gradlink(['watch', join(folder, 'none')]);
    // As a shell has it.
    expect(absent.code).toBe(127);
    expect(absent.stderr).toContain('ENOENT');
  });
});

describe('progress on one line', () => {
  it('is read state by state, each with its end', async () => {
    const file = join(folder, 'run.log');
    // A carriage return may be the last byte of what is read at once.
    const long = 64 * 1024;
    const ends = ['x'.repeat(long - 19), `\n${'y'.repeat(long - 2)}`, 'last'];
    writeFileSync(file, `10%\r20%\r\nwindows\r\n${ends.join('\r')}\r`);
    const lines: [string, string][] = [];
    const stop = new AbortController();
    stop.abort();
    await followFile(
      file,
      (line, end) => {
        lines.push([line.slice(0, 8), end]);
      },
      stop.signal,
    );
    expect(lines).toEqual([
      ['10%', '\r'],
      ['20%', '\n'],
      ['windows', '\n'],
      ['xxxxxxxx', '\n'],
      ['yyyyyyyy', '\r'],
      ['last', '\n'],
    ]);
  });

  it('is drawn, and what has no figure stays as it was', async () => {
    const file = join(folder, 'run.mjs');
    writeFileSync(file, "process.stdout.write('wait\\r1/9 [>] loss: 3\\r2/9 [=>] loss: 1\\r\\n');");
    const { stdout } = await gradlink(['watch', process.execPath, file]);
    expect(stdout).toMatch(/^wait\r/);
    expect(stdout).toContain('2 points, last 1, min 1, median 2, max 3');
  });
});

describe('a file that grows', () => {
  it('is read from its beginning, in whole lines, and to its end', async () => {
    const file = join(folder, 'run.log');
    writeFileSync(file, 'one\nt');
    const lines: string[] = [];
    const stop = new AbortController();
    const onLine = (line: string): void => void lines.push(line);
    const followed = followFile(file, onLine, stop.signal);
    appendFileSync(file, 'wo\n');
    await vi.waitUntil(() => lines.includes('two'), { timeout: 20_000 });
    // A new run.
    writeFileSync(file, '3\nend');
    await vi.waitUntil(() => lines.includes('3'), { timeout: 20_000 });
    stop.abort();
    await followed;
    expect(lines).toEqual(['one', 'two', '3', 'end']);
    const descriptors = readdirSync('/proc/self/fd').map((one) => `/proc/self/fd/${one}`);
    const opened = descriptors.filter((one) => existsSync(one)).map((one) => readlinkSync(one));
    expect(opened).not.toContain(file);
  });
});
