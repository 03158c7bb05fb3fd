// Messages of the ranks that one process holds: each call covers all of them, so interdependent messages go together.
import { argumentError } from '../../errors.js';
import type { NativeMessage } from '../../native/communicator.js';
import { dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import { milliseconds, optionNames, optionsObject, rankOf } from '../../checks.js';
import { Collectives } from '../collectives/collectives.js';
import { callOf } from '../calls/call.js';
import { asyncCallNames } from '../calls/option-names.js';
import { assertPlace } from '../calls/place.js';
import type { AsyncOptions } from '../calls/types.js';
import type { GroupMessage, GroupMessagesOf, MessageEnds } from './group-types.js';

const endNames = optionNames<MessageEnds & AsyncOptions>({
  from: true,
  to: true,
  timeoutMs: true,
  signal: true,
});
const messageNames = optionNames<GroupMessage>({ from: true, to: true, data: true });
const listNames = optionNames<GroupMessagesOf>({ send: true, receive: true });

type MessageOp = 'send' | 'receive' | 'sendReceive';

/** The messages of a {@link WorldGroup}. */
export abstract class GroupMessages extends Collectives<'gpu', readonly DeviceBuffer[]> {
  /**
   * Sends a buffer from `from`, a rank held here, to `to` in another process; resolves when `data` may be used again.
   * The receiver must give the same count and type, which is not checked. Messages between two ranks arrive in order.
   *
   * @throws TypeError ERR_INVALID_ARG_VALUE if this process holds both: {@link sendReceive} takes both ends.
   */
  async send(data: DeviceBuffer, options: MessageEnds & AsyncOptions): Promise<void> {
    const { from, to, ...rest } = optionsObject(options, endNames, 'send');
    await this.#together('send', { send: [{ from, to, data }] }, rest);
  }

  /** Receives a buffer into `to`, a rank held here, from `from` in another process: see {@link send}. */
  async receive(data: DeviceBuffer, options: MessageEnds & AsyncOptions): Promise<void> {
    const { from, to, ...rest } = optionsObject(options, endNames, 'receive');
    await this.#together('receive', { receive: [{ from, to, data }] }, rest);
  }

  /**
   * Runs several messages of ranks held here together; none waits for another. A message between two held ranks needs
   * both ends in the list. Peers may use one call or several.
   *
   * @throws TypeError ERR_INVALID_ARG_VALUE for a message between two held ranks unless both ends are given with equal
   *   length and type.
   */
  async sendReceive(messages: GroupMessagesOf, options?: AsyncOptions): Promise<void> {
    const given = optionsObject(options, asyncCallNames, 'sendReceive');
    const both = optionsObject(messages, listNames, 'sendReceive');
    await this.#together('sendReceive', both, given);
  }

  async #together(op: MessageOp, both: GroupMessagesOf, options: AsyncOptions): Promise<void> {
    const timeoutMs = milliseconds(options.timeoutMs, 'timeoutMs', -1);
    const sends = this.#read(op, both.send, true);
    const receives = this.#read(op, both.receive, false);
    const all = [...sends, ...receives];
    if (all.length === 0) return;
    const call = callOf(op, 0, {
      input: sends.map((one) => one.data),
      output: receives.map((one) => one.data),
      more: all.map((one) => one.message),
      timeoutMs,
    });
    await this.executor.run(call, options.signal);
  }

  #read(op: MessageOp, given: readonly GroupMessage[] | undefined, sends: boolean) {
    if (given === undefined) return [];
    if (!Array.isArray(given)) {
      const name = sends ? 'send' : 'receive';
      throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an array of messages', given);
    }
    return (given as readonly GroupMessage[]).map((one) => {
      const { from, to, data } = optionsObject(one, messageNames, op);
      const ends = { from: rankOf(from, 'from', this.size), to: rankOf(to, 'to', this.size) };
      const own = sends ? 'from' : 'to';
      const held = this.executor.heldRanks.indexOf(ends[own]);
      if (held < 0) {
        const expected = `a rank held here (${this.executor.heldRanks.join(', ')})`;
        throw argumentError('ERR_INVALID_ARG_VALUE', own, expected, ends[own]);
      }
      const dtype = dtypeNumber(data, undefined, 'data');
      assertPlace(this.executor, held, data, 'data');
      const message: NativeMessage = { held, peer: sends ? ends.to : ends.from, sends, dtype };
      return { message, data: storageOf(data) };
    });
  }
}
