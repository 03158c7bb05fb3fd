// Normal noise, equal in every run, on every machine and for any cut of an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gradlink {

/// The seed: each key and each update has its own noise.
struct NoiseOf {
  double seed;
  const std::string& key;
  std::int64_t update;
};

/// Mean 0, deviation 1, for the elements of the key from `first` on.
template <class T>
void fillNormal(std::span<T> out, const NoiseOf& of, std::size_t first);

}  // namespace gradlink
