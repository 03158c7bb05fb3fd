// Connections that have not proved anything yet: so many are held, and one more pushes out the oldest.
import type { Socket } from 'node:net';

export class Strangers {
  /** The oldest first. */
  private readonly held = new Set<Socket>();
  private gone = 0;

  /** @param most how many are held */
  constructor(private readonly most: () => number) {}

  /** How many there have been that proved nothing. */
  get count(): number {
    return this.gone + this.held.size;
  }

  add(socket: Socket): void {
    this.held.add(socket);
    socket.on('close', () => {
      this.leave(socket);
    });
    const [oldest] = this.held;
    if (this.held.size <= this.most() || oldest === undefined) return;
    // At once, not when it is closed: more may come before that.
    this.leave(oldest);
    oldest.destroy();
  }

  /** It is no stranger any more. */
  proved(socket: Socket): void {
    this.held.delete(socket);
  }

  private leave(socket: Socket): void {
    if (this.held.delete(socket)) this.gone += 1;
  }
}
