// A hash by which ranks compare texts.

/** FNV-1a. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5 | 0;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}
