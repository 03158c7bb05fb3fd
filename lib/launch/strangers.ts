// Connections that have not proved anything yet: a limited number, where a new one closes the oldest.
import type { Socket } from 'node:net';

export class Strangers {
  private readonly held = new Set<Socket>();
  private gone = 0;

  constructor(private readonly most: () => number) {}

  /** How many connections never proved anything. */
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
    // Removed now rather than on `close`: more may arrive before that.
    this.leave(oldest);
    oldest.destroy();
  }

  proved(socket: Socket): void {
    this.held.delete(socket);
  }

  private leave(socket: Socket): void {
    if (this.held.delete(socket)) this.gone += 1;
  }
}
