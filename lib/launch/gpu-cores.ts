// The cores of the NUMA node that a rank's GPUs are attached to. Nothing here loads the driver.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parseCoreList, shareCores } from './cores.js';

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** PCI addresses of the GPUs in bus order, which is the order of their ordinals. */
function addresses(root: string): string[] {
  try {
    return readdirSync(join(root, 'proc/driver/nvidia/gpus')).sort();
  } catch {
    return [];
  }
}

/** @param name a number, or the beginning of an id, as CUDA_VISIBLE_DEVICES has them */
function addressOf(name: string, root: string): string | undefined {
  const all = addresses(root);
  if (/^\d+$/.test(name)) return all[Number(name)];
  return all.find((address) => {
    const text = read(join(root, 'proc/driver/nvidia/gpus', address, 'information'));
    return /^GPU UUID:\s*(\S+)/m.exec(text)?.[1]?.startsWith(name) === true;
  });
}

/** Cores on the NUMA node of these GPUs; empty if the system does not tell. */
export function coresNear(gpus: readonly string[], root = '/'): readonly number[] {
  const found = gpus.flatMap((name) => {
    const address = addressOf(name, root);
    if (address === undefined) return [];
    const list = read(join(root, 'sys/bus/pci/devices', address.toLowerCase(), 'local_cpulist'));
    return list.trim() === '' ? [] : parseCoreList(list);
  });
  return [...new Set(found)].sort((one, other) => one - other);
}

/**
 * The cores of each rank of a host: ranks with GPUs on the same NUMA node split its cores.
 *
 * @param gpus of each rank
 * @param cores that the host's ranks may use
 * @returns undefined if the location of the GPUs is unknown or all cores are on their node
 */
export function shareCoresNear(
  gpus: readonly (readonly string[])[],
  cores: readonly number[],
  root?: string,
): readonly (readonly number[])[] | undefined {
  const near = gpus.map((each) => {
    const found = new Set(coresNear(each, root));
    const usable = cores.filter((core) => found.has(core));
    return usable.length === 0 ? cores : usable;
  });
  if (near.every(({ length }) => length === cores.length)) return undefined;
  const keys = near.map((each) => each.join());
  return near.map((own, rank) => {
    const peers = keys.flatMap((key, other) => (key === keys[rank] ? [other] : []));
    return shareCores(peers.length, own)[peers.indexOf(rank)] ?? own;
  });
}
