// Messages between two ranks. message-call.ts validates their arguments.
import { prepareReceive, prepareSend } from './calls/message-call.js';
import { HierarchicalOperations } from './neighbors/hierarchical.js';
import type {
  ArrayIn,
  AsyncOptions,
  CallOptions,
  Memory,
  Options,
  Received,
  ReceiveOptions,
  RequiredOptions,
  SendOptions,
} from './calls/types.js';

/** Point-to-point messages of a {@link Communicator}. */
export abstract class Messages<M extends Memory> extends HierarchicalOperations<M> {
  /**
   * Sends an array to one rank; resolves when `data` may be used again. Messages of up to 8 KiB need not wait for the
   * receiver. Messages from one rank with one tag arrive in order.
   *
   * @throws GradlinkError ERR_MISMATCH on both sides if the receiver's array is shorter or of another dtype; a sender
   *   that did not wait gets it from its next call.
   */
  async send<A extends ArrayIn<M>>(
    data: A,
    ...[options]: RequiredOptions<A, SendOptions & AsyncOptions>
  ): Promise<void> {
    await this.executor.run(prepareSend(this.executor, data, options, false), options.signal);
  }
  /** {@link send}, blocking. */
  sendSync<A extends ArrayIn<M>>(
    data: A,
    ...[options]: RequiredOptions<A, SendOptions & CallOptions>
  ): void {
    this.executor.runSync(prepareSend(this.executor, data, options, true));
  }

  /**
   * Receives one message into `data`; a shorter one leaves the rest unchanged.
   *
   * @param options - `from`: the sender, any when absent; `tag`.
   */
  async receive<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, ReceiveOptions & AsyncOptions>
  ): Promise<Received> {
    return this.executor.run(prepareReceive(this.executor, data, options, false), options?.signal);
  }
  /** {@link receive}, blocking. */
  receiveSync<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, ReceiveOptions & CallOptions>
  ): Received {
    return this.executor.runSync(prepareReceive(this.executor, data, options, true));
  }
}
