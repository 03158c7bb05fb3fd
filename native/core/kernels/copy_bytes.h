// memcpy that is fast on every machine.
//
// glibc before 2.39 copies from 4 KiB up to the second-level cache's size with one string
// instruction, `rep movsb`. On AMD cores since Zen 3 that is 20 times slower if the source is
// aligned to 32 bytes and the destination is not (1.6 GB/s against 37; Zen 3, November 2026).
// JavaScript arrays begin 16 bytes into their page.
#pragma once

#include <cstddef>
#include <cstring>

namespace gradlink {

/// Shorter and longer copies use vectors in memcpy, too.
inline constexpr std::size_t kLongCopyFrom = 4 << 10;
inline constexpr std::size_t kLongCopyTo = 2 << 20;

/// Uses vectors of this library if memcpy was measured to be slow.
void copyLong(void* to, const void* from, std::size_t bytes);
void copyByVectors(void* to, const void* from, std::size_t bytes);

/// Copies between buffers that do not overlap; `bytes` may be 0.
inline void copyBytes(void* to, const void* from, std::size_t bytes) {
  if (bytes >= kLongCopyFrom && bytes < kLongCopyTo) return copyLong(to, from, bytes);
  if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace gradlink
