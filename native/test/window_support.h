// What tests of windows share: bodies that each rank of any communicator runs. They return "" or
// what is wrong.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/window.h"
#include "test/reference.h"

namespace gradlink::test {

using OpenWindow = std::function<std::unique_ptr<Window>(const WindowSpec&)>;

inline void fillWith(void* array, std::size_t count, DType dtype, double value) {
  for (std::size_t i = 0; i < count; ++i) {
    switch (dtype) {
      case DType::float16:
        reference::write(array, i, reference::narrow(value, 5));
        break;
      case DType::bfloat16:
        reference::write(array, i, reference::narrow(value, 8));
        break;
      case DType::float32:
        reference::write(array, i, static_cast<float>(value));
        break;
      case DType::float64:
        reference::write(array, i, value);
        break;
      default:
        reference::write(array, i, static_cast<std::int32_t>(value));
    }
  }
}

inline std::vector<std::uint8_t> filled(std::size_t count, DType dtype, double value) {
  std::vector<std::uint8_t> array(std::max<std::size_t>(count * sizeOf(dtype), 1));
  fillWith(array.data(), count, dtype, value);
  return array;
}

/// The exponential graph: ranks 1, 2, 4 ... below.
inline WindowSpec exponential(int rank, int size, std::size_t count, DType dtype,
                              const void* initial) {
  WindowSpec spec;
  spec.count = count;
  spec.dtype = dtype;
  spec.initial = initial;
  spec.zeroInit = true;
  for (int distance = 1; distance < size; distance *= 2) {
    spec.sources.push_back((rank + size - distance) % size);
    spec.destinations.push_back((rank + distance) % size);
  }
  return spec;
}

inline std::vector<Neighbor> all(const std::vector<int>& ranks, double weight = 1) {
  std::vector<Neighbor> neighbors;
  for (const int rank : ranks) neighbors.push_back({rank, weight});
  return neighbors;
}

inline std::string wrongAt(const void* array, std::size_t count, DType dtype, double want) {
  const auto expected = filled(count, dtype, want);
  const auto* bytes = static_cast<const std::uint8_t*>(array);
  for (std::size_t i = 0; i < count * sizeOf(dtype); ++i) {
    if (bytes[i] != expected[i]) {
      return std::string(nameOf(dtype)) + ", " + std::to_string(count) + " elements: element " +
             std::to_string(i / sizeOf(dtype)) + " is not " + std::to_string(want);
    }
  }
  return {};
}

/// Puts, gets, accumulates and updates of every type; each rank's values differ.
inline std::string windowsMoveEveryType(Communicator& comm, const OpenWindow& open) {
  const int me = comm.heldRanks()[0];
  const int size = comm.size();
  const Deadline deadline = Deadline::in(60000);
  constexpr DType kTypes[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                              DType::int32};
  for (const DType dtype : kTypes) {
    // What goes in pieces goes in bytes: one type will do.
    const std::size_t most = dtype == DType::float32 ? 70001 : 4099;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, most}) {
      const auto initial = filled(count, dtype, 4 * (me + 1));
      const WindowSpec spec = exponential(me, size, count, dtype, initial.data());
      const auto window = open(spec);
      double sources = 0;
      for (const int source : spec.sources) sources += 4 * (source + 1);
      const auto check = [&](const std::string& what, double want) {
        const std::string wrong = wrongAt(window->data(), count, dtype, want);
        return wrong.empty() ? wrong : what + ": " + wrong;
      };
      // Of its own array, then of another.
      window->put(window->data(), all(spec.destinations), 1, false, false, deadline);
      auto other = filled(count, dtype, 4 * (me + 1));
      window->put(other.data(), all(spec.destinations), 1, true, false, deadline);
      comm.barrier();
      for (const std::uint64_t version : window->versions()) {
        if (version != 1) return "a version is " + std::to_string(version);
      }
      window->update(nullptr, 1, all(spec.sources), 1, true, false, deadline);
      if (std::string wrong = check("put", 4 * (me + 1) + 2 * sources); !wrong.empty())
        return wrong;
      window->update(nullptr, 1, all(spec.sources), 1, false, false, deadline);
      if (std::string wrong = check("reset", 4 * (me + 1) + 2 * sources); !wrong.empty()) {
        return wrong;
      }
      fillWith(window->data(), count, dtype, 4 * (me + 1));
      comm.barrier();
      window->get(all(spec.sources), false, deadline);
      comm.barrier();
      window->update(nullptr, 1, all(spec.sources), 1, false, false, deadline);
      if (std::string wrong = check("get", 4 * (me + 1) + sources); !wrong.empty()) return wrong;
      window->free({});
    }
  }
  return {};
}

/// What goes round by halves: weights, and p beside the data; nothing is lost.
inline std::string windowsKeepTheSum(Communicator& comm, const OpenWindow& open) {
  const int me = comm.heldRanks()[0];
  const int size = comm.size();
  const Deadline deadline = Deadline::in(60000);
  constexpr std::size_t kCount = 300;
  const auto initial = filled(kCount, DType::float64, me + 1);
  const WindowSpec spec = exponential(me, size, kCount, DType::float64, initial.data());
  const auto window = open(spec);
  const double share = 1.0 / static_cast<double>(spec.destinations.size() + 1);
  for (int step = 0; step < 60; ++step) {
    window->put(window->data(), all(spec.destinations, share), share, true, true, deadline);
    window->update(nullptr, 1, all(spec.sources), 1, true, true, deadline);
  }
  comm.barrier();
  window->update(nullptr, 1, all(spec.sources), 1, true, true, deadline);
  const double own[] = {static_cast<const double*>(window->data())[kCount - 1], window->p()};
  double sums[2];
  const void* const in[] = {own};
  void* const out[] = {sums};
  comm.allReduce({in, out}, 2, DType::float64, ReduceOp::sum);
  window->free({});
  const double total = size * (size + 1) / 2.0;
  if (std::abs(sums[0] - total) > 1e-9 * total) return "the sum became " + std::to_string(sums[0]);
  if (std::abs(sums[1] - size) > 1e-9 * size) return "p's sum became " + std::to_string(sums[1]);
  return {};
}

/// Rank 0 waits in a receive all the time: what comes needs nothing of its calls.
inline std::string windowsNeedNothingOfTheTarget(Communicator& comm, const OpenWindow& open) {
  const int me = comm.heldRanks()[0];
  const int size = comm.size();
  const Deadline deadline = Deadline::in(60000);
  constexpr std::size_t kCount = 100'000;
  constexpr int kPuts = 5;
  WindowSpec spec;
  const auto initial = filled(kCount, DType::float32, 100 + me);
  spec.count = kCount;
  spec.initial = initial.data();
  spec.zeroInit = true;
  for (int r = 1; me == 0 && r < size; ++r) spec.sources.push_back(r);
  if (me != 0) spec.destinations.push_back(0);
  // Rank 0 is read, too.
  for (int r = 1; me == 0 && r < size; ++r) spec.destinations.push_back(r);
  if (me != 0) spec.sources.push_back(0);
  const auto window = open(spec);
  char token = 0;
  std::string wrong;
  if (me == 0) {
    for (int r = 1; r < size; ++r) comm.receive(&token, 1, DType::int8, r, 7);
    for (const std::uint64_t version : window->versions()) {
      if (version != kPuts) wrong = "a version is " + std::to_string(version);
    }
    double want = 0;
    for (int r = 1; r < size; ++r) want += 10 * r;
    window->update(nullptr, 0, all(spec.sources), 1, false, false, deadline);
    if (wrong.empty()) wrong = wrongAt(window->data(), kCount, DType::float32, want);
  } else {
    auto values = filled(kCount, DType::float32, 10 * me);
    for (int i = 0; i < kPuts; ++i) window->put(values.data(), all({0}), 1, false, false, deadline);
    window->get(all({0}), false, deadline);
    window->update(nullptr, 0, all({0}, 0.5), 1, false, false, deadline);
    wrong = wrongAt(window->data(), kCount, DType::float32, 50);
    comm.send(&token, 1, DType::int8, 0, 7);
  }
  comm.barrier();
  window->free({});
  return wrong;
}

/// The owner and each other rank have a lock of their own.
inline std::string windowsLock(Communicator& comm, const OpenWindow& open) {
  const int me = comm.heldRanks()[0];
  const int size = comm.size();
  const auto initial = filled(1, DType::float32, 0);
  const auto window = open(exponential(me, size, 1, DType::float32, initial.data()));
  if (me > 0 && window->tryLock(0, me) != Window::kLocked) return "a free lock is not given";
  comm.barrier();
  for (int r = 1; r < size; ++r) {
    if (me == 0 && window->tryLock(0, r) != r) return "a lock is given twice";
  }
  if (me > 0 && window->tryLock(0, me) != me) return "a lock is given twice";
  comm.barrier();
  if (me > 0) {
    window->unlock(0, me);
    // Behind the unlock.
    if (window->tryLock(0, me) != Window::kLocked) return "what was given back is not given";
    window->unlock(0, me);
    if (window->tryLock(me, 0) != Window::kLocked || window->tryLock(me, 0) != me)
      return "its own lock is another's";
    window->unlock(me, 0);
  }
  window->free({});
  return {};
}

}  // namespace gradlink::test
