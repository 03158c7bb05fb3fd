// Messages between measuring ranks; the content identifies the sender.
import type { Communicator } from '../../communicator/communicator.js';
import { DeviceBuffer } from '../../tensor/device-buffer.js';

/** Sends from one array of this rank and receives into another. */
export interface Messages {
  /** The memory of the arrays. */
  readonly memory: 'host' | 'gpu';
  send(to: number): Promise<void>;
  receive(from: number): Promise<void>;
  /** Wrong bytes of the last message from that rank. */
  countWrong(from: number): Promise<number>;
  free(): void;
}

/** A prime, so that adjacent memory blocks differ. */
const period = 251;

function contentOf(rank: number, bytes: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: bytes }, (_, at) => (at + 7 * rank) % period);
}

function countDifferent(got: Uint8Array, rank: number): number {
  return contentOf(rank, got.length).reduce(
    (wrong, value, at) => wrong + (got[at] === value ? 0 : 1),
    0,
  );
}

/** In host memory. */
export function hostMessages(world: Communicator, bytes: number): Messages {
  const out = contentOf(world.rank, bytes);
  const into = new Uint8Array(bytes);
  return {
    memory: 'host',
    send: (to) => world.send(out, { to }),
    receive: async (from) => {
      await world.receive(into, { from });
    },
    countWrong: (from) => Promise.resolve(countDifferent(into, from)),
    free: () => undefined,
  };
}

/** On this rank's GPU. */
export async function gpuMessages(
  world: Communicator<'gpu'>,
  gpu: number,
  bytes: number,
): Promise<Messages> {
  const out = DeviceBuffer.alloc(gpu, 'uint8', bytes);
  const into = DeviceBuffer.alloc(gpu, 'uint8', bytes);
  await out.copyFrom(contentOf(world.rank, bytes));
  return {
    memory: 'gpu',
    send: (to) => world.send(out, { to }),
    receive: async (from) => {
      await world.receive(into, { from });
    },
    countWrong: async (from) => countDifferent(await into.copyTo(), from),
    free: () => {
      out.dispose();
      into.dispose();
    },
  };
}
