// Named baselines: one folder each with the reports of its runs.
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

import { argumentError, ruleError } from '../errors.js';
import { checkFolder, fileFailure, makeFolders, ownEntry, writeOwnFile } from '../files/index.js';
import { inputError, readInput } from '../results/input-file.js';
import { anObject, arrayOf, withMeant } from '../checks.js';
import { readReport } from '../results/read-report.js';
import type { Report } from '../results/result.js';
import {
  readWhole,
  removeFolder,
  replaceFolder,
  wholeFolder,
  wholeName,
} from './replaced-folder.js';

type Variables = Readonly<Record<string, string | undefined>>;

/** One of the XDG base directories; relative paths are invalid and ignored. */
function xdg(variables: Variables, name: string, ...standard: readonly string[]): string {
  const value = variables[name];
  if (value !== undefined && isAbsolute(value)) return value;
  return join(variables.HOME ?? homedir(), ...standard);
}

/** A baseline without its reports. */
export interface BaselineInfo {
  /** The name it was saved under. */
  readonly name: string;
  /** Number of runs. */
  readonly runs: number;
  /** The command of these runs. */
  readonly tool: string;
  /** Distinct cases of all runs. */
  readonly cases: number;
  /** Start of its first run, ISO 8601 in UTC. */
  readonly startedAt: string;
  /** Whether comparisons without a name use it. */
  readonly inUse: boolean;
}

const isName = (text: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(text);

/**
 * A user's baselines, in `$XDG_DATA_HOME/gradlink/baselines`; the one in use is named in `$XDG_STATE_HOME/gradlink`.
 */
export class Baselines {
  private readonly folder: string;
  private readonly state: string;

  constructor(variables: Readonly<Record<string, string | undefined>>) {
    anObject(variables, 'variables');
    this.folder = join(xdg(variables, 'XDG_DATA_HOME', '.local', 'share'), 'gradlink', 'baselines');
    this.state = join(xdg(variables, 'XDG_STATE_HOME', '.local', 'state'), 'gradlink');
  }

  /**
   * Whether there is a baseline of this name.
   *
   * @throws GradlinkError ERR_SYSTEM if a link or a file is in its place
   */
  has(name: string): boolean {
    if (!isName(name)) return false;
    return ownEntry(wholeFolder(join(this.folder, name)), 'folder') !== undefined;
  }

  /**
   * Saves runs under a name and replaces earlier ones. All files are read first, so that a bad one changes nothing.
   *
   * @param files at least one report of `--format json`
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
    try {
      makeFolders(this.folder);
      checkFolder(this.folder);
      ownEntry(join(this.folder, name), 'folder');
      replaceFolder(join(this.folder, name), files);
    } catch (cause) {
      throw fileFailure(join(this.folder, name), 'written', cause);
    }
  }

  /** @throws TypeError if there is no such baseline; the message names the existing ones */
  read(name: string): Report[] {
    this.require(name);
    return readWhole(join(this.folder, name), (folder) => {
      const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
      if (files.length === 0) {
        throw inputError(folder, 'a baseline', 'it has no reports; remove it, or save it again');
      }
      return files.sort().map((file) => {
        ownEntry(join(folder, file), 'file');
        return readReport(join(folder, file));
      });
    });
  }

  /** Makes it the default of comparisons with a single run. */
  use(name: string): void {
    this.require(name);
    const file = join(this.state, 'baseline');
    try {
      makeFolders(this.state);
    } catch (cause) {
      throw fileFailure(file, 'written', cause);
    }
    writeOwnFile(file, [`${name}\n`]);
  }

  /** The name of the baseline in use; undefined if none is, or it was removed. */
  inUse(): string | undefined {
    const file = join(this.state, 'baseline');
    if (!existsSync(file)) return undefined;
    const expected = 'what gradlink baseline use NAME wrote';
    const name = readInput(file, expected, 4096).trim();
    return this.has(name) ? name : undefined;
  }

  /** Removes a baseline with its runs. */
  remove(name: string): void {
    this.require(name);
    checkFolder(this.folder);
    removeFolder(join(this.folder, name));
  }

  /** All names in alphabetical order. */
  names(): string[] {
    if (!existsSync(this.folder)) return [];
    const folders = readdirSync(this.folder, { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    return [...new Set(folders.map(({ name }) => wholeName(name)))].filter(isName).sort();
  }

  /** All baselines in alphabetical order. */
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
      names.length === 0
        ? 'there is none yet; gradlink baseline save NAME RUN makes one'
        : `expected one of ${names.join(', ')}`;
    throw ruleError(
      'ERR_INVALID_ARG_VALUE',
      `the baseline ${withMeant(name, names)} is unknown: ${known}`,
    );
  }
}
