// Splits a byte stream into lines, so that the output of several processes mixes by whole lines.

const newline = 0x0a;
const defaultRoom = 1 << 20;

/** Memory for unfinished lines of one or more streams: a line that never ends must not fill ours. */
export class Room {
  private taken = 0;

  constructor(private readonly bytes = defaultRoom) {}

  /** @returns whether the memory is used up */
  take(bytes: number): boolean {
    this.taken += bytes;
    return this.taken >= this.bytes;
  }
}

export class LineSplitter {
  private parts: Buffer[] = [];
  private length = 0;

  /**
   * @param onLine gets each line with its newline. Data without a newline is part of a line that is too long, or the
   *   unfinished last line of a stream.
   */
  constructor(
    private readonly onLine: (line: Buffer) => void,
    private readonly room = new Room(),
  ) {}

  write(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end < 0) break;
      this.push(chunk.subarray(start, end + 1));
      this.flush();
      start = end + 1;
    }
    if (start < chunk.length && this.push(chunk.subarray(start))) this.flush();
  }

  /** The stream has ended: the rest is its last line. */
  end(): void {
    if (this.length > 0) this.flush();
  }

  /** @returns whether the memory is used up */
  private push(part: Buffer): boolean {
    this.parts.push(part);
    this.length += part.length;
    return this.room.take(part.length);
  }

  private flush(): void {
    const line = this.parts.length === 1 ? this.parts[0]! : Buffer.concat(this.parts, this.length);
    this.room.take(-this.length);
    this.parts = [];
    this.length = 0;
    this.onLine(line);
  }
}
