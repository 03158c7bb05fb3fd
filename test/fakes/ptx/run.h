// Runs a decoded kernel: its threads one after the other, as they have no barrier.
#pragma once

#include <bit>
#include <cstring>
#include <functional>
#include <type_traits>

#include "ptx/program.h"

namespace gradlink::fake::ptx {

/// Memory that may be accessed; empty where there is none.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};
using FindRange = std::function<Range(std::uint64_t address)>;

enum class Outcome { done, illegalAddress, misaligned, failed };

struct Result {
  Outcome outcome = Outcome::done;
  /// Kernel, line, text and what was wrong.
  std::string message;
  std::uint64_t instructions = 0;
};

/// `parameters` is the kernel's block of them.
Result run(const Program& program, unsigned blocks, unsigned threads,
           const std::vector<std::byte>& parameters, const FindRange& findRange);

struct Trap {
  Outcome outcome;
  std::string message;
};

struct Thread {
  std::uint64_t* registers;
  const std::byte* parameters;
  std::size_t next;
  /// The allocation that each instruction met last.
  Range* met;
  const FindRange* findRange;
};

template <class T>
T get(const Thread& thread, std::uint16_t index) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(thread.registers[index]));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(thread.registers[index]);
  } else {
    return static_cast<T>(thread.registers[index]);
  }
}

template <class T>
void put(const Thread& thread, std::uint16_t index, T value) {
  if constexpr (std::is_same_v<T, float>) {
    thread.registers[index] = std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    thread.registers[index] = std::bit_cast<std::uint64_t>(value);
  } else {
    // A narrow signed value fills the whole register, as a load of one does.
    thread.registers[index] = static_cast<std::uint64_t>(value);
  }
}

/// Calls `with` with a value of the type that `name` says; null for another.
template <class With>
Operation byInteger(std::string_view name, With with) {
  if (name == "u8" || name == "b8") return with(std::uint8_t{});
  if (name == "s8") return with(std::int8_t{});
  if (name == "u16" || name == "b16") return with(std::uint16_t{});
  if (name == "s16") return with(std::int16_t{});
  if (name == "u32" || name == "b32") return with(std::uint32_t{});
  if (name == "s32") return with(std::int32_t{});
  if (name == "u64" || name == "b64") return with(std::uint64_t{});
  if (name == "s64") return with(std::int64_t{});
  return nullptr;
}

template <class With>
Operation byFloat(std::string_view name, With with) {
  if (name == "f32") return with(float{});
  if (name == "f64") return with(double{});
  return nullptr;
}

template <class With>
Operation byNumber(std::string_view name, With with) {
  const Operation found = byInteger(name, with);
  return found != nullptr ? found : byFloat(name, with);
}

}  // namespace gradlink::fake::ptx
