// Named baselines: a folder each with the reports of its runs.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

import { argumentError } from '../errors.js';
import { anObject } from '../kinds.js';
import { arrayOf } from '../validate.js';
import { readReport } from '../results/read-report.js';
import type { Report } from '../results/result.js';

type Variables = Readonly<Record<string, string | undefined>>;

/** One of the XDG base directories; a relative path in the variable is not valid and counts as none. */
function xdg(variables: Variables, name: string, ...standard: readonly string[]): string {
  const value = variables[name];
  if (value !== undefined && isAbsolute(value)) return value;
  return join(variables.HOME ?? homedir(), ...standard);
}

/** What is known of a baseline without comparing. */
export interface BaselineInfo {
  readonly name: string;
  readonly runs: number;
  readonly tool: string;
  readonly cases: number;
  /** Start of its first run, ISO 8601 in UTC. */
  readonly startedAt: string;
  readonly inUse: boolean;
}

const isName = (text: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(text);

/** The baselines of a user, in `$XDG_DATA_HOME/gradlink/baselines`; which is in use, in `$XDG_STATE_HOME/gradlink`. */
export class Baselines {
  private readonly folder: string;
  private readonly state: string;

  constructor(variables: Readonly<Record<string, string | undefined>>) {
    anObject(variables, 'variables');
    this.folder = join(xdg(variables, 'XDG_DATA_HOME', '.local', 'share'), 'gradlink', 'baselines');
    this.state = join(xdg(variables, 'XDG_STATE_HOME', '.local', 'state'), 'gradlink');
  }

  /** Whether there is a baseline of this name. */
  has(name: string): boolean {
    return isName(name) && existsSync(join(this.folder, name));
  }

  /**
   * Keeps the runs under a name, in place of those that it had. All are read first, so that a bad file changes nothing.
   *
   * @param files reports that `--format json` wrote, at least one
   */
  save(name: string, files: readonly string[]): void {
    if (!isName(name)) {
      throw argumentError(
        'ERR_INVALID_ARG_VALUE',
        'the name of a baseline',
        'letters, digits, dots, dashes and underscores, a letter or digit first',
        name,
      );
    }
    if (arrayOf(files, 'files', 'an array of files').length === 0) {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'files', 'at least one report', files);
    }
    for (const file of files) readReport(file);
    // A folder of its own until it is whole: whoever reads meanwhile finds the old runs or the new ones.
    const whole = join(this.folder, name);
    const partial = join(this.folder, `.${name}.${String(process.pid)}`);
    mkdirSync(partial, { recursive: true });
    try {
      files.forEach((file, index) => {
        copyFileSync(file, join(partial, `${String(index + 1).padStart(4, '0')}.json`));
      });
      rmSync(whole, { recursive: true, force: true });
      renameSync(partial, whole);
    } finally {
      rmSync(partial, { recursive: true, force: true });
    }
  }

  /** @throws TypeError when there is no such baseline; the message names those that there are */
  read(name: string): Report[] {
    this.require(name);
    const folder = join(this.folder, name);
    return readdirSync(folder)
      .filter((file) => file.endsWith('.json'))
      .sort()
      .map((file) => readReport(join(folder, file)));
  }

  /** Makes it the one that a comparison with a single run takes. */
  use(name: string): void {
    this.require(name);
    mkdirSync(this.state, { recursive: true });
    writeFileSync(join(this.state, 'baseline'), `${name}\n`);
  }

  /** The name of the baseline in use; undefined when none is, or it has gone. */
  inUse(): string | undefined {
    const file = join(this.state, 'baseline');
    if (!existsSync(file)) return undefined;
    const name = readFileSync(file, 'utf8').trim();
    return this.has(name) ? name : undefined;
  }

  /** Forgets one, with its runs. */
  remove(name: string): void {
    this.require(name);
    rmSync(join(this.folder, name), { recursive: true });
  }

  /** All there are, in alphabetical order. */
  names(): string[] {
    if (!existsSync(this.folder)) return [];
    return readdirSync(this.folder).filter(isName).sort();
  }

  /** All there are, with what each holds. */
  list(): BaselineInfo[] {
    const inUse = this.inUse();
    return this.names().map((name) => {
      const reports = this.read(name);
      return {
        name,
        runs: reports.length,
        tool: [...new Set(reports.map(({ run }) => run.tool))].join(', '),
        cases: reports[0]?.cases.length ?? 0,
        startedAt: reports[0]?.run.startedAt ?? '',
        inUse: name === inUse,
      };
    });
  }

  private require(name: string): void {
    if (this.has(name)) return;
    const names = this.names();
    const known =
      names.length === 0 ? 'there is none yet: gradlink baseline save NAME RUN' : names.join(', ');
    throw argumentError('ERR_INVALID_ARG_VALUE', 'the name of a baseline', `one of ${known}`, name);
  }
}
