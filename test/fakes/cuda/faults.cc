#include "cuda/faults.h"

#include <array>
#include <atomic>

namespace gradlink::fake {

Ordinal nextFault(Counted kind) {
  struct Names {
    const char* fails;
    const char* hangs;
    const char* spoils;
  };
  constexpr std::array<Names, 3> kNames = {
      {{"oom-at", "", ""}, {"copy", "stuck-copy", "wrong-copy"}, {"launch", "stuck-launch", ""}}};
  static std::array<std::atomic<long>, 3> counts{};
  const auto index = static_cast<std::size_t>(kind);
  const long call = ++counts[index];
  if (faultNumber(kNames[index].fails) == static_cast<double>(call)) return Ordinal::fails;
  if (faultNumber(kNames[index].hangs) == static_cast<double>(call)) return Ordinal::hangs;
  if (faultNumber(kNames[index].spoils) == static_cast<double>(call)) return Ordinal::spoils;
  return Ordinal::none;
}

}  // namespace gradlink::fake
