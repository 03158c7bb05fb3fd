import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

import { beforeEach, describe, expect, it } from 'vitest';

import { Baselines } from '../../lib/compare/index.js';
import { readWhole, replaceFolder } from '../../lib/compare/replaced-folder.js';
import { GradlinkError } from '../../lib/index.js';
import { madeRun } from '../support/comparing.js';
import { noSmallDisk, SmallDisk } from '../support/small-disk.js';
import { folderOfEachTest } from '../support/folders.js';

let home: string;
let folder: string;
let reports: string[];
let baselines: Baselines;

function open(at: string): void {
  home = at;
  folder = join(home, 'gradlink', 'baselines');
  baselines = new Baselines({ XDG_DATA_HOME: home, XDG_STATE_HOME: home });
}

let scratch: string;
folderOfEachTest((made) => (scratch = made));
beforeEach(() => {
  reports = [1, 2, 3].map((seed) => {
    const file = join(scratch, `${seed}.json`);
    writeFileSync(file, JSON.stringify(madeRun({ seed })));
    return file;
  });
  open(join(scratch, 'home'));
});

const one = (): string[] => reports.slice(0, 1);
const three = (): string[] => reports;
const aside = (): string => join(folder, '.v1.old');
const whole = (): string => join(folder, 'v1');

describe('a baseline', () => {
  it('is found whole between the two renames of a save, and the next save ends them', () => {
    baselines.save('v1', three());
    renameSync(whole(), aside());
    expect(baselines.has('v1')).toBe(true);
    expect(baselines.names()).toEqual(['v1']);
    expect(baselines.read('v1')).toHaveLength(3);
    baselines.use('v1');
    expect(baselines.list()).toMatchObject([{ name: 'v1', runs: 3, inUse: true }]);
    baselines.save('v1', one());
    expect(baselines.read('v1')).toHaveLength(1);
    expect(readdirSync(folder)).toEqual(['v1']);
  });

  it('is the new one after the second rename', () => {
    baselines.save('v1', three());
    renameSync(whole(), aside());
    baselines.save('v2', one());
    renameSync(join(folder, 'v2'), whole());
    expect(baselines.read('v1')).toHaveLength(1);
    baselines.save('v1', three());
    expect(baselines.read('v1')).toHaveLength(3);
    expect(readdirSync(folder)).toEqual(['v1']);
  });

  it('is no link, and no report of it is', () => {
    const refused = expect.objectContaining({ code: 'ERR_SYSTEM' }) as GradlinkError;
    baselines.save('other', one());
    symlinkSync('other', whole());
    expect(baselines.names()).toEqual(['other']);
    for (const act of [
      () => baselines.read('v1'),
      () => {
        baselines.save('v1', three());
      },
      () => {
        baselines.remove('v1');
      },
    ])
      expect(act).toThrow(refused);
    expect(readlinkSync(whole())).toBe('other');
    symlinkSync(reports[1]!, join(folder, 'other/0002.json'));
    expect(() => baselines.read('other')).toThrow(refused);
  });

  it('that is removed does not come back', () => {
    baselines.save('v1', three());
    mkdirSync(aside());
    baselines.remove('v1');
    expect(baselines.has('v1')).toBe(false);
    baselines.save('v1', three());
    renameSync(whole(), aside());
    baselines.remove('v1');
    expect(baselines.names()).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is saved beside what killed saves left, which goes', () => {
    baselines.save('v1', one());
    const dead = [`.v1.${hostname()}.2147483647.00ff00ff.partial`, '.v1.2147483647'];
    const others = [`.v1.${hostname()}.${process.ppid}.00ff00ff.partial`, '.v2.old'];
    for (const name of [...dead, ...others]) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, '0001.json'), '{');
    }
    baselines.save('v1', three());
    expect(readdirSync(folder).sort()).toEqual([...others, 'v1'].sort());
  });
});

describe('reading a folder that is replaced meanwhile', () => {
  it('begins again, so that files of two are not mixed', () => {
    baselines.save('v1', three());
    const seen: string[] = [];
    const read = readWhole(whole(), (place) => {
      seen.push(readFileSync(join(place, '0001.json'), 'utf8'));
      if (seen.length === 1) replaceFolder(whole(), [...reports].reverse());
      return [seen.at(-1)!, readFileSync(join(place, '0003.json'), 'utf8')];
    });
    expect(seen).toHaveLength(2);
    expect(read).toEqual([2, 0].map((at) => readFileSync(reports[at]!, 'utf8')));
  });

  it('fails as reading does where nobody replaced it', () => {
    expect(() => readWhole(join(scratch, 'absent'), (place) => readdirSync(place))).toThrow(
      'ENOENT',
    );
  });
});

describe.skipIf(noSmallDisk !== undefined)('on a full disk', () => {
  it('stays as it was, and nothing of the new one stays', () => {
    const disk = new SmallDisk(256 * 1024);
    try {
      open(disk.folder);
      baselines.save('v1', one());
      baselines.use('v1');
      disk.fill(8192);
      expect(() => {
        baselines.save('v1', [...three(), ...three(), ...three()]);
      }).toThrow(GradlinkError);
      expect(readdirSync(folder)).toEqual(['v1']);
      expect(baselines.read('v1')).toHaveLength(1);
      expect(baselines.inUse()).toBe('v1');
      expect(existsSync(aside())).toBe(false);
    } finally {
      disk.remove();
    }
  });
});
