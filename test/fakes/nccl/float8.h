// The two float8 formats of NCCL, as numbers and back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradlink::fake {

/// e4m3: four bits of exponent, no infinity, largest 448. e5m2: five, with infinity, largest 57344.
enum class Float8 : std::uint8_t { e4m3, e5m2 };

void widen(Float8 format, const std::uint8_t* from, float* to, std::size_t count);
/// To the nearest, ties to even; what is too large becomes the largest number, as GPUs do it.
void narrow(Float8 format, const float* from, std::uint8_t* to, std::size_t count);

}  // namespace gradlink::fake
