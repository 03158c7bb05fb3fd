import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

import { beforeEach, describe, expect, it } from 'vitest';

import { writeFileAtomic } from '../../lib/files/index.js';
import { GradlinkError } from '../../lib/index.js';
import { noSmallDisk, SmallDisk } from '../support/small-disk.js';
import { folderOfEachTest } from '../support/folders.js';

let folder: string;
let file: string;
folderOfEachTest((made) => (folder = made));
beforeEach(() => {
  file = join(folder, 'run.json');
});

const text = (path = file): string => readFileSync(path, 'utf8');

function failure(path: string, pieces: Iterable<string | Uint8Array> = ['new']): GradlinkError {
  try {
    writeFileAtomic(path, pieces);
  } catch (error) {
    if (error instanceof GradlinkError) return error;
    throw error;
  }
  throw new Error(`${path} was written`);
}

describe('a file written in one step', () => {
  it('has all pieces, in their order, and nothing lies beside it', () => {
    writeFileAtomic(file, ['one, ', Buffer.from('two'), '', new Uint8Array([0x21])]);
    expect(text()).toBe('one, two!');
    writeFileAtomic(file, ['three']);
    expect(text()).toBe('three');
    expect(readdirSync(folder)).toEqual(['run.json']);
  });

  it('is a new one, which who reads the old one does not see', () => {
    writeFileSync(file, 'old');
    const reader = openSync(file, 'r');
    writeFileAtomic(file, ['new']);
    const read = Buffer.alloc(3);
    readSync(reader, read);
    closeSync(reader);
    expect(read.toString()).toBe('old');
  });

  it('is taken piece by piece', () => {
    let most = 0;
    writeFileAtomic(
      file,
      (function* () {
        for (let piece = 0; piece < 100; ++piece) {
          most = Math.max(most, statSync(join(folder, readdirSync(folder)[0]!)).size);
          yield 'x'.repeat(1000);
        }
      })(),
    );
    expect(most).toBe(99_000);
    expect(text()).toHaveLength(100_000);
  });

  it.each([0o600, 0o640, 0o755])('keeps the mode %o of the one before', (mode) => {
    writeFileSync(file, 'old');
    chmodSync(file, mode);
    writeFileAtomic(file, ['new']);
    expect(statSync(file).mode & 0o7777).toBe(mode);
  });

  it('stays the old one where the pieces end in an error', () => {
    writeFileSync(file, 'old');
    const pieces = (function* () {
      yield 'new';
      throw new Error('no report');
    })();
    expect(failure(file, pieces).message).toContain('no report');
    expect(text()).toBe('old');
    expect(readdirSync(folder)).toEqual(['run.json']);
  });

  it('is what a symbolic link leads to, also one that is still to be made', () => {
    mkdirSync(join(folder, 'real'));
    symlinkSync('real/second', join(folder, 'first'));
    symlinkSync('../run.json', join(folder, 'real', 'second'));
    for (const content of ['made', 'replaced']) {
      writeFileAtomic(join(folder, 'first'), [content]);
      expect(text()).toBe(content);
      expect(readlinkSync(join(folder, 'first'))).toBe('real/second');
    }
    symlinkSync(folder, join(folder, 'self'));
    writeFileAtomic(join(folder, 'self', 'real', '..', 'run.json'), ['through a folder']);
    expect(text()).toBe('through a folder');
    expect(readdirSync(folder).sort()).toEqual(['first', 'real', 'run.json', 'self']);
  });

  it('removes what killed processes left of it, and nothing of others', () => {
    const at = (name: string): string => join(folder, name);
    const dead = `.run.json.${hostname()}.2147483647.00ff00ff.partial`;
    const others = [
      `.run.json.${hostname()}.${process.ppid}.00ff00ff.partial`,
      `.run.json.another-host.2147483647.00ff00ff.partial`,
      `.run2.json.${hostname()}.2147483647.00ff00ff.partial`,
      `.run.json.${hostname()}.2147483647.00ff00ff.kept`,
    ];
    for (const name of [dead, ...others]) writeFileSync(at(name), 'half');
    writeFileAtomic(file, ['whole']);
    expect(readdirSync(folder).sort()).toEqual([...others, 'run.json'].sort());
  });
});

describe('what is no file', () => {
  it('is written into: a device', () => {
    writeFileAtomic('/dev/null', ['gone']);
    expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true);
    expect(failure('/dev/full').message).toMatch(
      /^\/dev\/full .*: ENOSPC: .*, write; free space\b/,
    );
    expect(lstatSync('/dev/full').isCharacterDevice()).toBe(true);
  });

  it('is written into: a FIFO', () => {
    const fifo = join(folder, 'fifo');
    expect(spawnSync('mkfifo', [fifo]).status).toBe(0);
    const reader = openSync(fifo, constants.O_RDWR);
    writeFileAtomic(fifo, ['through']);
    const read = Buffer.alloc(100);
    expect(read.toString('utf8', 0, readSync(reader, read))).toBe('through');
    closeSync(reader);
    expect(readdirSync(folder)).toEqual(['fifo']);
  });

  it('is written into: an own descriptor, from where it stands', () => {
    const descriptor = openSync(file, 'w');
    writeFileSync(descriptor, 'before, ');
    symlinkSync(`/dev/fd/${descriptor}`, join(folder, 'link'));
    writeFileAtomic(`/dev/fd/${descriptor}`, ['one, ']);
    writeFileAtomic(`/proc/self/fd/${descriptor}`, ['two, ']);
    writeFileAtomic(join(folder, 'link'), ['three']);
    closeSync(descriptor);
    expect(text()).toBe('before, one, two, three');
  });

  it('is refused: a folder, a name in none, links in a circle', () => {
    expect(failure(folder).message).toContain('a directory; name');
    const absent = join(folder, 'absent', 'run.json');
    expect(failure(absent).message).toMatch(new RegExp(`^${absent} .*: ENOENT: .*folder first`));
    symlinkSync('two', join(folder, 'one'));
    symlinkSync('one', join(folder, 'two'));
    expect(failure(join(folder, 'one')).message).toMatch(/\blinks .*loop/);
    expect(failure(join(folder, 'x'.repeat(300))).message).toMatch(/: ENAMETOOLONG: .*shorter/);
    expect(readdirSync(folder).sort()).toEqual(['one', 'two']);
  });

  it.each([
    ['EACCES', 'this user'],
    ['EROFS', 'file system'],
    ['EDQUOT', 'quota'],
  ])('tells what to do about %s', (code, todo) => {
    const cause = Object.assign(new Error(`${code}: said, open`), { code });
    const pieces = (function* (): Generator<string> {
      yield '';
      throw cause;
    })();
    const { message, cause: kept } = failure(file, pieces);
    expect(message).toMatch(new RegExp(`^${file} .*: ${code}: said, open; .*${todo}`));
    expect(kept).toBe(cause);
  });

  it('is ERR_SYSTEM with the cause', () => {
    const { code, cause, usable } = failure('/dev/full');
    expect({ code, usable }).toEqual({ code: 'ERR_SYSTEM', usable: true });
    expect(cause).toMatchObject({ code: 'ENOSPC' });
  });
});

describe.skipIf(noSmallDisk !== undefined)('on a full disk', () => {
  it.each([0, 4096])('with room for %i bytes the old file stays alone', (free) => {
    const disk = new SmallDisk(65_536);
    try {
      const full = join(disk.folder, 'run.json');
      writeFileSync(full, 'old');
      disk.fill(free);
      const error = failure(full, ['x'.repeat(4096), 'y'.repeat(4096)]);
      expect(error.message).toMatch(/ENOSPC.*; free space\b/);
      expect(text(full)).toBe('old');
      expect(readdirSync(disk.folder).sort()).toEqual(['ballast', 'run.json']);
    } finally {
      disk.remove();
    }
  });
});
