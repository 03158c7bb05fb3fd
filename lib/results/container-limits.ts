// The limits of this process: control groups of version 1, 2 or both, and resource limits. All parent groups apply. In
// a container the path may be the host's, so only the lower part is visible.
import { readdirSync, readFileSync } from 'node:fs';

/** The kernel's files; replaced in tests. */
export interface LimitFiles {
  readonly groups: string;
  readonly hierarchy: string;
  readonly limits: string;
}

const ownFiles: LimitFiles = {
  groups: '/proc/self/cgroup',
  hierarchy: '/sys/fs/cgroup',
  limits: '/proc/self/limits',
};

/** A limit with its file. */
export interface Bound {
  readonly value: number;
  readonly file: string;
}

/** The lowest of all levels; null if unlimited. */
export interface ContainerLimits {
  /** CPU time, in cores. */
  readonly cores: Bound | null;
  /** Number of usable cores. */
  readonly cpuset: Bound | null;
  readonly memoryBytes: Bound | null;
  /** Above this, memory is reclaimed, which slows the group down. */
  readonly memoryHighBytes: Bound | null;
  /** Memory and swap together. */
  readonly memoryAndSwapBytes: Bound | null;
  /** Memory that is still available. */
  readonly memoryLeftBytes: number | null;
  /** Processes and threads together. */
  readonly processes: Bound | null;
  /** By page size, such as `2MB`. */
  readonly hugePages: Readonly<Record<string, Bound>>;
  /** The lowest limit of a device, in bytes or operations per second, as `8:0 wbps`. */
  readonly io: Readonly<Record<string, Bound>>;
  /** Of the process itself: the soft limit. */
  readonly openFiles: Bound | null;
  readonly lockedBytes: Bound | null;
  readonly userProcesses: Bound | null;
  readonly addressBytes: Bound | null;
  readonly fileBytes: Bound | null;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Version 1 writes "no limit" as the largest number of whole pages. */
const unlimited = 2 ** 62;

/** Undefined for `max`, -1 and a missing file. */
function amount(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  const value = Number(text);
  return value >= unlimited ? undefined : value;
}

/** `0-3,8` is 5. */
function coresIn(list: string | undefined): number | undefined {
  if (list === undefined || list === '') return undefined;
  const ends = list.split(',').map((part) => part.split('-').map(Number));
  const total = ends.reduce((sum, [first = NaN, last = first]) => sum + last - first + 1, 0);
  return Number.isFinite(total) ? total : undefined;
}

function share(quota: string | undefined, period: string | undefined): number | undefined {
  const [granted, of] = [amount(quota), amount(period)];
  return granted === undefined || of === undefined || of === 0 ? undefined : granted / of;
}

/**
 * The folders of this process's groups from the innermost up, for a controller of version 1, or for '' of version 2.
 */
function foldersOf({ groups, hierarchy }: LimitFiles, controller: string): string[] {
  const folders: string[] = [];
  for (const line of (read(groups) ?? '').split('\n')) {
    // "number:controllers:path"; no controllers means version 2. A path may contain colons.
    const [, , controllers, path] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    const of = controllers.split(',');
    if (controller === '' ? controllers !== '' : !of.includes(controller)) continue;
    const roots =
      controller === ''
        ? [hierarchy, `${hierarchy}/unified`]
        : [...new Set([controllers, ...of])].map((name) => `${hierarchy}/${name}`);
    for (const root of roots) {
      const parts = path.split('/').filter((part) => part !== '');
      for (let depth = parts.length; depth >= 0; --depth) {
        folders.push([root, ...parts.slice(0, depth)].join('/'));
      }
    }
  }
  return folders;
}

type Reader = (folder: string) => readonly [value: number | undefined, name: string];

/** Reads a file with one number. */
const file =
  (name: string): Reader =>
  (folder) => [amount(read(`${folder}/${name}`)), name];

const least = (bounds: readonly (Bound | null)[]): Bound | null =>
  bounds.reduce((a, b) => (a === null || (b !== null && b.value < a.value) ? b : a), null);

function leastOf(folders: readonly string[], reader: Reader): Bound | null {
  return least(
    folders.map((folder) => {
      const [value, name] = reader(folder);
      return value === undefined ? null : { value, file: `${folder}/${name}` };
    }),
  );
}

/** The soft limit of a line of /proc/self/limits. */
function processLimit(files: LimitFiles, name: string): Bound | null {
  const line = (read(files.limits) ?? '').split('\n').find((one) => one.startsWith(name));
  const value = amount(line?.slice(name.length).trim().split(/\s+/)[0]);
  return value === undefined ? null : { value, file: files.limits };
}

function smallest(into: Record<string, Bound>, name: string, bound: Bound): void {
  into[name] = least([into[name] ?? null, bound])!;
}

function hugePagesOf(folders: readonly string[]): Record<string, Bound> {
  const pages: Record<string, Bound> = {};
  for (const folder of folders) {
    for (const name of namesIn(folder)) {
      const [, size] = /^hugetlb\.([^.]+)\.(?:max|limit_in_bytes)$/.exec(name) ?? [];
      const value = size === undefined ? undefined : amount(read(`${folder}/${name}`));
      if (size !== undefined && value !== undefined) {
        smallest(pages, size, { value, file: `${folder}/${name}` });
      }
    }
  }
  return pages;
}

/** Version 1's files with version 2's names. */
const throttles = {
  'blkio.throttle.read_bps_device': 'rbps',
  'blkio.throttle.write_bps_device': 'wbps',
  'blkio.throttle.read_iops_device': 'riops',
  'blkio.throttle.write_iops_device': 'wiops',
} as const;

function ioOf(second: readonly string[], first: readonly string[]): Record<string, Bound> {
  const io: Record<string, Bound> = {};
  for (const folder of second) {
    const name = `${folder}/io.max`;
    for (const line of (read(name) ?? '').split('\n')) {
      const [device = '', ...bounds] = line.split(' ');
      for (const bound of bounds) {
        const [kind = '', text] = bound.split('=');
        const value = amount(text);
        if (value !== undefined) smallest(io, `${device} ${kind}`, { value, file: name });
      }
    }
  }
  for (const folder of first) {
    for (const [own, kind] of Object.entries(throttles)) {
      const name = `${folder}/${own}`;
      for (const line of (read(name) ?? '').split('\n')) {
        const [device = '', text] = line.split(/\s+/);
        const value = amount(text);
        if (value !== undefined) smallest(io, `${device} ${kind}`, { value, file: name });
      }
    }
  }
  return io;
}

/** The rest of a group's limit: file caches count as used, but are reclaimed first. */
function leftOf(folder: string, limit: number | undefined, usage: string, prefix: string) {
  const used = amount(read(`${folder}/${usage}`));
  if (limit === undefined || used === undefined) return undefined;
  const stat = read(`${folder}/memory.stat`) ?? '';
  const files = ['inactive_file', 'active_file'].map((name) => {
    const line = stat.split('\n').find((one) => one.startsWith(`${prefix}${name} `));
    return amount(line?.split(' ')[1]) ?? 0;
  });
  return Math.max(0, limit - Math.max(0, used - files[0]! - files[1]!));
}

/** All limits of this process. */
export function containerLimits(files: LimitFiles = ownFiles): ContainerLimits {
  const second = foldersOf(files, '');
  const first = (controller: string) => foldersOf(files, controller);
  const both = (controller: string, v2: Reader | undefined, v1: Reader): Bound | null =>
    least([v2 === undefined ? null : leastOf(second, v2), leastOf(first(controller), v1)]);
  const left = [
    ...second.map((one) => leftOf(one, amount(read(`${one}/memory.max`)), 'memory.current', '')),
    ...first('memory').map((one) =>
      leftOf(one, amount(read(`${one}/memory.limit_in_bytes`)), 'memory.usage_in_bytes', 'total_'),
    ),
  ].filter((one) => one !== undefined);
  return {
    cores: both(
      'cpu',
      (folder) => {
        const [quota, period] = (read(`${folder}/cpu.max`) ?? '').split(' ');
        return [share(quota, period), 'cpu.max'];
      },
      (folder) => {
        const name = 'cpu.cfs_quota_us';
        return [share(read(`${folder}/${name}`), read(`${folder}/cpu.cfs_period_us`)), name];
      },
    ),
    cpuset: both(
      'cpuset',
      (folder) => [coresIn(read(`${folder}/cpuset.cpus.effective`)), 'cpuset.cpus.effective'],
      (folder) => {
        const effective = coresIn(read(`${folder}/cpuset.effective_cpus`));
        return effective === undefined
          ? [coresIn(read(`${folder}/cpuset.cpus`)), 'cpuset.cpus']
          : [effective, 'cpuset.effective_cpus'];
      },
    ),
    memoryBytes: both('memory', file('memory.max'), file('memory.limit_in_bytes')),
    memoryHighBytes: leastOf(second, file('memory.high')),
    memoryAndSwapBytes: both(
      'memory',
      (folder) => {
        const swap = amount(read(`${folder}/memory.swap.max`));
        const memory = amount(read(`${folder}/memory.max`));
        const sum = swap === undefined || memory === undefined ? undefined : swap + memory;
        return [sum, 'memory.swap.max'];
      },
      file('memory.memsw.limit_in_bytes'),
    ),
    memoryLeftBytes: left.length === 0 ? null : Math.min(...left),
    processes: both('pids', file('pids.max'), file('pids.max')),
    hugePages: hugePagesOf([...second, ...first('hugetlb')]),
    io: ioOf(second, first('blkio')),
    openFiles: processLimit(files, 'Max open files'),
    lockedBytes: processLimit(files, 'Max locked memory'),
    userProcesses: processLimit(files, 'Max processes'),
    addressBytes: processLimit(files, 'Max address space'),
    fileBytes: processLimit(files, 'Max file size'),
  };
}

let granted: number | null | undefined;

/** This process's CPU time in cores, cached; null if unlimited. */
export function grantedCores(): number | null {
  granted ??= containerLimits().cores?.value ?? null;
  return granted;
}
