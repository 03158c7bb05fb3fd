#include "measure/uniform_numbers.h"

#include <algorithm>
#include <vector>

#include "core/memory/huge_pages.h"
#include "core/thread_pool.h"
#include "measure/half_numbers.h"

namespace gradlink::measure {
namespace {

// Elements of a thread's part: enough work for a wake-up.
constexpr std::size_t kDrawnElements = std::size_t{1} << 18;

// A Weyl sequence by the golden ratio, mixed by two multiplications. It can start anywhere.
constexpr std::uint32_t kWeylStep = 0x9e3779b9u;
constexpr std::uint32_t kMixers[] = {0x21f0aaadu, 0x735a2d97u};

std::int32_t numberAt(std::uint32_t start, std::size_t index) {
  const std::uint32_t state = start + kWeylStep * static_cast<std::uint32_t>(index + 1);
  std::uint32_t mixed = (state ^ (state >> 16)) * kMixers[0];
  mixed = (mixed ^ (mixed >> 15)) * kMixers[1];
  return static_cast<std::int32_t>(mixed ^ (mixed >> 15));
}

template <class T, class Encode>
void drawPart(const DrawnArray& array, std::size_t first, std::size_t end, Encode encode) {
  T* const to = static_cast<T*>(array.data);
  for (std::size_t i = first; i < end; ++i) to[i] = encode(numberAt(array.start, i));
}

void draw(const DrawnArray& array, std::size_t first, std::size_t end, DType dtype) {
  const auto real = [](std::int32_t number) { return static_cast<float>(number) * 0x1p-31f; };
  switch (dtype) {
    case DType::float32:
      return drawPart<float>(array, first, end, real);
    case DType::float64:
      return drawPart<double>(array, first, end, [](std::int32_t n) { return n * 0x1p-31; });
    case DType::float16:
      return drawPart<std::uint16_t>(array, first, end,
                                     [real](std::int32_t n) { return toFloat16(real(n)); });
    case DType::bfloat16:
      return drawPart<std::uint16_t>(array, first, end,
                                     [real](std::int32_t n) { return toBFloat16(real(n)); });
    default:
      return;
  }
}

}  // namespace

void drawUniform(std::span<const DrawnArray> arrays, DType dtype) {
  std::vector<std::size_t> ends;  // of each array, in parts
  ends.reserve(arrays.size());
  std::size_t parts = 0;
  for (const DrawnArray& array : arrays) {
    parts += (array.count + kDrawnElements - 1) / kDrawnElements;
    ends.push_back(parts);
  }
  ThreadPool::shared().parallel(parts, [&](std::size_t part) {
    const auto index =
        static_cast<std::size_t>(std::ranges::upper_bound(ends, part) - ends.begin());
    const std::size_t before = index == 0 ? 0 : ends[index - 1];
    const DrawnArray& array = arrays[index];
    const std::size_t first = (part - before) * kDrawnElements;
    draw(array, first, std::min(first + kDrawnElements, array.count), dtype);
  });
}

void touchMemory(void* data, std::size_t bytes) {
  adviseHugePages(data, bytes);
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kPartBytes = kHugePageBytes;
  const std::size_t parts = (bytes + kPartBytes - 1) / kPartBytes;
  ThreadPool::shared().parallel(parts, [&](std::size_t part) {
    const std::size_t end = std::min((part + 1) * kPartBytes, bytes);
    for (std::size_t at = part * kPartBytes; at < end; at += kPage) {
      volatile std::uint8_t& byte = static_cast<std::uint8_t*>(data)[at];
      byte = byte;
    }
  });
}

}  // namespace gradlink::measure
