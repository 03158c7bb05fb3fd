// Cuts a byte stream into lines, so that the output of several processes mixes by lines and never inside one.

const newline = 0x0a;
/** A longer line is passed on in parts: a program that never ends its line must not fill our memory. */
const longestLine = 1 << 20;

export class LineSplitter {
  private parts: Buffer[] = [];
  private length = 0;

  /** @param onLine gets each line with its newline; parts of overlong lines and the last line get one added. */
  constructor(private readonly onLine: (line: Buffer) => void) {}

  write(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end < 0) break;
      this.push(chunk.subarray(start, end + 1));
      this.flush();
      start = end + 1;
    }
    if (start < chunk.length) this.push(chunk.subarray(start));
    if (this.length >= longestLine) this.end();
  }

  /** The stream has ended: what is left is a line of its own. */
  end(): void {
    if (this.length === 0) return;
    this.push(Buffer.of(newline));
    this.flush();
  }

  private push(part: Buffer): void {
    this.parts.push(part);
    this.length += part.length;
  }

  private flush(): void {
    const line = Buffer.concat(this.parts, this.length);
    this.parts = [];
    this.length = 0;
    this.onLine(line);
  }
}
