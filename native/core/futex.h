// Sleeping on a word of process-private memory.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace gradlink {

/// Sleeps while `word` holds `expected`. May wake spuriously: callers loop.
inline void futexWait(const std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "the kernel reads four bytes");
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

/// The same for at most `nanoseconds`, less than a second.
inline void futexWaitFor(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                         long nanoseconds) {
  const timespec longest{0, nanoseconds};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &longest, nullptr, 0);
}

/// Wakes up to `count` sleepers. Never reads the word, which may already be freed.
inline void futexWake(const std::atomic<std::uint32_t>* word, int count = INT_MAX) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

inline void cpuRelax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace gradlink
