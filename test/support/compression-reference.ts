// Gradient compression in plain TypeScript: float32 arithmetic through Math.fround, codes as MXNet lays them out.

export interface Compressed {
  /** Padded with zeros to whole 32-bit words. */
  readonly codes: Uint8Array;
  /** What the codes do not carry. */
  readonly residual: Float32Array;
}

/** Adds grad to residual and codes the sum; both stay as they are. */
export function compress(
  type: '2bit' | '1bit',
  threshold: number,
  grad: Float32Array,
  residual: Float32Array,
): Compressed {
  const t = Math.fround(threshold);
  const bits = type === '2bit' ? 2 : 1;
  const perByte = 8 / bits;
  const codes = new Uint8Array(4 * Math.ceil(grad.length / (32 / bits)));
  const left = residual.map((r, i) => {
    const sum = Math.fround(r + grad[i]!);
    let code = 0;
    let sent = 0;
    if (type === '1bit') {
      code = sum > t ? 1 : 0;
      sent = sum > t ? 1 : -1;
    } else if (sum >= t) {
      code = 3;
      sent = t;
    } else if (sum <= -t) {
      code = 2;
      sent = -t;
    }
    const byte = Math.floor(i / perByte);
    codes[byte] = codes[byte]! | (code << (8 - bits - bits * (i % perByte)));
    return Math.fround(sum - sent);
  });
  return { codes, residual: left };
}

/** What the codes of `count` elements mean. */
export function decompress(
  type: '2bit' | '1bit',
  threshold: number,
  codes: Uint8Array,
  count: number,
): Float32Array {
  const t = Math.fround(threshold);
  const bits = type === '2bit' ? 2 : 1;
  const perByte = 8 / bits;
  const meanings = type === '2bit' ? [0, 0, -t, t] : [-1, 1];
  return Float32Array.from({ length: count }, (_, i) => {
    const byte = codes[Math.floor(i / perByte)]!;
    const code = (byte >> (8 - bits - bits * (i % perByte))) & (2 ** bits - 1);
    return meanings[code]!;
  });
}
