/** Numbers between -1 and 1 that look like nothing in particular; the same each time. */
export function sines(count: number, step: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(1 + i * step));
}
