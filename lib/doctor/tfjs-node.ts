// TensorFlow's native library in tfjs-node and tfjs-node-gpu: its version, and whether it computes on a GPU.

import { join } from 'node:path';

import { probe, type GpusFound, type Probed, type TfjsNodeFound } from './probes.js';
import { namesIn } from './system.js';
import { findPackage, packageFolders } from './tfjs.js';
import type { Finding } from './types.js';

export const tfjsNodePackages = ['tfjs-node', 'tfjs-node-gpu'] as const;
export type TfjsNodePackage = (typeof tfjsNodePackages)[number];

const guide = 'docs/tfjs-node-gpu.md';

/** The requirements of the TensorFlow that the GPU package downloads. */
export const ownTensorFlow = { version: '2.9.1', cuda: '11.2', cudnn: '8.1' } as const;

export interface TfjsNodeSeen {
  readonly name: TfjsNodePackage;
  /** Of the package. */
  readonly version: string;
  /** Undefined if the installer left no binding to load. */
  readonly probed: Probed<TfjsNodeFound> | undefined;
}

function degraded(name: string, text: string, advice: string): Finding {
  return { name, status: 'degraded', text, advice };
}

function withoutGpu(found: TfjsNodeFound, gpus: Probed<GpusFound>): string {
  if (!('found' in gpus)) return 'no driver: see the line driver above';
  if (gpus.found.gpus.length === 0) return 'the driver shows no GPU: see CUDA_VISIBLE_DEVICES';
  const { version, cuda, cudnn } = ownTensorFlow;
  const needs =
    found.tensorflow === version
      ? `CUDA ${cuda} and cuDNN ${cudnn}`
      : 'the CUDA and cuDNN it was built for, if it was built for GPUs';
  return (
    `TensorFlow ${found.tensorflow} needs ${needs}, found by ldconfig or LD_LIBRARY_PATH; ` +
    `TF_CPP_MIN_LOG_LEVEL=0 makes it name what is missing; see ${guide}`
  );
}

export function tfjsNodeFinding(
  { name, version, probed }: TfjsNodeSeen,
  gpus: Probed<GpusFound>,
): Finding {
  if (probed === undefined) {
    const text = `${version}, but its installer left no binding to TensorFlow`;
    const again = `npm rebuild @tensorflow/${name}, or compile the binding against another TensorFlow`;
    return degraded(name, text, `${again}: ${guide}`);
  }
  if (!('found' in probed)) {
    return degraded(name, `${version}, does not load: ${probed.reason}`, `see ${guide}`);
  }
  const { found } = probed;
  const what = `${version}, TensorFlow ${found.tensorflow} (${found.library ?? 'of an unknown file'})`;
  if (found.failure !== null) {
    const text = `${what}, but no operation works: ${found.failure}`;
    const cause = found.failure.includes('isNullOrUndefined')
      ? 'use Node 20 or 22: it calls what Node 23 removed'
      : `see ${guide}`;
    return degraded(name, text, cause);
  }
  if (found.gpu) {
    const names = 'found' in gpus ? gpus.found.gpus.map((gpu) => gpu.name) : [];
    const last = names.at(-1) ?? 'GPU';
    const where = names.length > 1 ? `${last}, the last of ${names.length}` : last;
    const rule = names.length > 1 ? '; in a job each rank has its own' : '';
    return { name, status: 'ok', text: `${what}, computes on ${where}${rule}`, advice: null };
  }
  const text = `${what}, computes on the CPU`;
  return name === 'tfjs-node-gpu'
    ? degraded(name, text, withoutGpu(found, gpus))
    : { name, status: 'ok', text, advice: null };
}

/** Loads the installed packages, each in its own process. */
export async function seeTfjsNode(
  timeoutMs: number,
  env: NodeJS.ProcessEnv,
): Promise<TfjsNodeSeen[]> {
  // Silences TensorFlow and keeps it from reserving all GPU memory.
  const quiet = { ...env, TF_CPP_MIN_LOG_LEVEL: '3', TF_FORCE_GPU_ALLOW_GROWTH: 'true' };
  const seen = tfjsNodePackages.map(async (name): Promise<TfjsNodeSeen | undefined> => {
    const found = findPackage(packageFolders(), `@tensorflow/${name}`);
    if (found === undefined) return undefined;
    const { folder, version } = found;
    const there = namesIn(join(folder, 'lib/napi-v8')).some((file) =>
      /^tfjs_binding\.node\b/.test(file),
    );
    const probed = there ? await probe('tfjs-node', timeoutMs, quiet, folder) : undefined;
    return { name, version, probed };
  });
  return (await Promise.all(seen)).filter((one) => one !== undefined);
}
