// The two ways n ranks of one process can be driven, behind one face, so that each test runs on both.
import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';

export type Method =
  | 'allReduce'
  | 'reduce'
  | 'broadcast'
  | 'allGather'
  | 'reduceScatter'
  | 'allToAll'
  | 'gather'
  | 'scatter'
  | 'scan'
  | 'exscan';

export interface Call {
  readonly method: Method;
  /** For each rank; scatter takes the root's only. */
  readonly datas: readonly unknown[];
  /** For each rank, those that get nothing included. */
  readonly outs?: readonly unknown[];
  readonly options?: Record<string, unknown>;
}

export interface Subject {
  /** Each rank's result; undefined where a rank gets none. */
  call(call: Call): Promise<readonly unknown[]>;
  close(): Promise<void>;
}

type AnyMethod = (data: unknown, options: unknown) => unknown;

function invoke(communicator: object, method: string, data: unknown, options: unknown): unknown {
  return (communicator as unknown as Record<string, AnyMethod>)[method]?.call(
    communicator,
    data,
    options,
  );
}

const atRoot = (method: Method) => method === 'reduce' || method === 'gather';

/** All ranks in one communicator, of the host or of GPUs; `suffix` 'Sync' takes the blocking twins. */
export function together(
  communicator: LocalGroup | LocalGroup<'gpu'>,
  suffix: '' | 'Sync' = '',
): Subject {
  return {
    async call({ method, datas, outs, options }) {
      const root = Number(options?.['root'] ?? 0);
      const data = method === 'scatter' ? datas[root] : datas;
      const out = outs && (atRoot(method) ? outs[root] : outs);
      const result = await invoke(communicator, method + suffix, data, {
        ...options,
        ...(out === undefined ? {} : { out }),
      });
      return atRoot(method)
        ? datas.map((_, i) => (i === root ? result : undefined))
        : (result as unknown[]);
    },
    close: () => communicator.close(),
  };
}

/** One communicator a rank, all driven from this thread. */
export function apart(n: number): Subject {
  const communicator = Communicator.local(n);
  return {
    call: async ({ method, datas, outs, options }) =>
      Promise.all(
        (await communicator.openRanks()).map((one, rank) =>
          invoke(one, method, datas[rank], {
            ...options,
            ...(outs === undefined ? {} : { out: outs[rank] }),
          }),
        ),
      ),
    close: () => communicator.close(),
  };
}

export const subjects = [
  { name: 'local(n)', make: (n: number) => together(Communicator.local(n)) },
  { name: 'local(n), sync', make: (n: number) => together(Communicator.local(n), 'Sync') },
  { name: 'local(n).openRanks()', make: apart },
] as const;
