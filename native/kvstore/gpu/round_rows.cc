// Rows alone: what is pulled of a value, and what a lazy optimizer steps.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kvstore/base/rows.h"
#include "kvstore/gpu/round.h"

namespace gradlink {

void GpuRound::addRows(GpuUnit& unit) {
  GpuKey& key = unit.key();
  repeats_ = false;
  if (key.count == 0) return;
  const std::size_t rowBytes = key.rowLength * sizeOf(key.dtype);
  std::vector<std::int64_t> rows = unit.head().operation->rows;
  sortEachOnce(rows);
  Work& work = work_[key.home];
  for (const GpuArray& out : unit.out) {
    // All of the output is written anyway: elsewhere it arrives as one copy.
    void* const image =
        out.place == key.home ? out.data : places_[key.home].arena.take(key.bytes());
    work.zeros.push_back({image, key.bytes()});
    forEachRun(rows, [&](std::size_t first, std::size_t count, std::size_t /*at*/) {
      const std::size_t at = first * rowBytes;
      addSums(key.home, key.dtype,
              {{static_cast<const std::byte*>(key.value.data()) + at},
               {static_cast<std::byte*>(image) + at},
               count * key.rowLength});
    });
    if (image != out.data) leave(unit, out, image);
  }
}

void GpuRound::addRowUpdate(GpuUnit& unit) {
  GpuKey& key = unit.key();
  GpuKeyState& state = *unit.head().state;
  repeats_ = false;
  if (key.count == 0) return;
  makeState(key, state, places_[key.home]);
  const std::size_t size = sizeOf(key.dtype);
  const std::size_t bytes = unit.touched.rows.size() * key.rowLength * size;
  if (bytes == 0) return;
  void* const staged = key.room(0, bytes);
  std::memcpy(staged, unit.touched.data.data(), bytes);
  const GpuArray rows{places_[key.home].arena.take(bytes), key.home};
  work_[key.home].uploads.push_back({rows, {staged, kHostPlace}, bytes});

  const cuda::StepTask whole = stepOf(key, unit.head());
  const std::size_t stateSize = key.dtype == DType::float64 ? sizeof(double) : sizeof(float);
  const auto shifted = [](void* array, std::size_t by) -> void* {
    return array == nullptr ? nullptr : static_cast<std::byte*>(array) + by;
  };
  auto& steps = work_[key.home].steps[stepKindOf(key, *state.optimizer)];
  forEachRun(unit.touched.rows, [&](std::size_t row, std::size_t count, std::size_t at) {
    const std::size_t first = row * key.rowLength;
    cuda::StepTask task = whole;
    task.grads = {shifted(rows.data, at * key.rowLength * size)};
    task.weight = shifted(whole.weight, first * size);
    for (void*& array : task.states) array = shifted(array, first * stateSize);
    if (task.master != nullptr) task.master += first;
    task.count = count * key.rowLength;
    steps.push_back(std::move(task));
  });
}

}  // namespace gradlink
