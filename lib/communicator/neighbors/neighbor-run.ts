// neighborAllReduce of a call that was checked, on one rank.
import type { Executor } from '../executor.js';
import type { NeighborCall } from '../calls/neighbor-call.js';

export async function submitNeighbor(
  executor: Executor,
  { dtype, data, out, count, neighborhoods, timeoutMs }: NeighborCall,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { native } = executor;
  await executor.submit(
    {
      op: 'neighborAllReduce',
      reads: data,
      writes: out,
      start: (ticket) =>
        native.neighborAllReduce(dtype, data, out, count, neighborhoods, timeoutMs, ticket),
    },
    signal,
  );
}

/** {@link submitNeighbor}, blocking. */
export function runNeighborSync(
  executor: Executor,
  { dtype, data, out, count, neighborhoods, timeoutMs }: NeighborCall,
): void {
  executor.blocking('neighborAllReduce', data, out, () => {
    executor.native.neighborAllReduceSync(dtype, data, out, count, neighborhoods, timeoutMs);
  });
}
