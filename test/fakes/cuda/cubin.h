// What a cubin says of itself: an ELF file, whose header has no length, since a driver is given its
// address alone.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace gradlink::fake {

/// The form that drivers of CUDA 12 do not take.
constexpr int kAbiOfCuda13 = 8;

struct Cubin {
  /// 90 for sm_90.
  int architecture = 0;
  /// Of the file's form.
  int abi = 0;
  /// The names of its global functions.
  std::set<std::string, std::less<>> entries;
};

/// Empty for what is no ELF file.
std::optional<Cubin> readCubin(const void* image);

}  // namespace gradlink::fake
