// What tests of windows share: bodies that each rank of any communicator runs. They return "" or
// what is wrong.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "core/communicator.h"
#include "core/neighbors.h"
#include "core/window.h"
#include "test/reference.h"

namespace gradlink::test {

using OpenWindow = std::function<std::unique_ptr<Window>(const WindowSpec&)>;

/// An array of a rank, on the host or on its GPU.
class PlacedArray {
 public:
  virtual ~PlacedArray() = default;
  virtual void* data() const = 0;
  virtual void write(const void* from) = 0;
  virtual void read(void* to) const = 0;
  PlacedArray(std::size_t count, DType dtype) : count_(count), dtype_(dtype) {}
  PlacedArray(const PlacedArray&) = delete;
  PlacedArray& operator=(const PlacedArray&) = delete;

  void fill(double value);
  /// "" where all elements are `value`.
  std::string wrong(double value) const;

 protected:
  std::size_t bytes() const { return count_ * sizeOf(dtype_); }

 private:
  const std::size_t count_;
  const DType dtype_;
};

/// Where the arrays of a communicator's windows lie.
struct Places {
  std::function<std::shared_ptr<PlacedArray>(std::size_t count, DType)> make;
  /// A window over the array, or over a copy that the array is from then on.
  std::function<std::unique_ptr<Window>(WindowSpec, std::shared_ptr<PlacedArray>&)> open;

  std::shared_ptr<PlacedArray> filled(std::size_t count, DType dtype, double value) const {
    auto array = make(count, dtype);
    array->fill(value);
    return array;
  }
};

inline std::vector<std::uint8_t> filled(std::size_t count, DType dtype, double value) {
  const std::size_t bytes = sizeOf(dtype);
  std::vector<std::uint8_t> array(std::max<std::size_t>(count * bytes, bytes));
  reference::put(array.data(), 0, dtype, value);
  for (std::size_t at = bytes; at < array.size(); ++at) array[at] = array[at - bytes];
  return array;
}

/// The exponential graph: ranks 1, 2, 4 ... below.
inline WindowSpec exponential(int rank, int size, std::size_t count, DType dtype,
                              const void* initial) {
  WindowSpec spec{.count = count, .dtype = dtype, .initial = initial, .zeroInit = true};
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

inline void PlacedArray::fill(double value) { write(filled(count_, dtype_, value).data()); }

inline std::string PlacedArray::wrong(double value) const {
  std::vector<std::uint8_t> host(bytes());
  read(host.data());
  return wrongAt(host.data(), count_, dtype_, value);
}

/// Memory of its own, or of a window.
class HostArray final : public PlacedArray {
 public:
  HostArray(std::size_t count, DType dtype, void* of = nullptr)
      : PlacedArray(count, dtype), own_(of == nullptr ? bytes() + 1 : 0), data_(of) {
    if (of == nullptr) data_ = own_.data();
  }
  void* data() const override { return data_; }
  void write(const void* from) override { std::memcpy(data_, from, bytes()); }
  void read(void* to) const override { std::memcpy(to, data_, bytes()); }

 private:
  std::vector<std::uint8_t> own_;
  void* data_;
};

inline Places onTheHost(const OpenWindow& open) {
  return {[](std::size_t count, DType dtype) { return std::make_shared<HostArray>(count, dtype); },
          [open](WindowSpec spec, std::shared_ptr<PlacedArray>& array) {
            spec.initial = array->data();
            auto window = open(spec);
            array = std::make_shared<HostArray>(spec.count, spec.dtype, window->data());
            return window;
          }};
}

/// Puts, gets, accumulates and updates of every type; each rank's values differ.
inline std::string windowsMoveEveryType(Communicator& comm, const Places& places) {
  const int me = comm.heldRanks()[0];
  const int size = comm.size();
  const Deadline deadline = Deadline::in(60000);
  constexpr DType kTypes[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                              DType::int32};
  for (const DType dtype : kTypes) {
    // What goes in pieces goes in bytes: one type will do.
    const std::size_t most = dtype == DType::float32 ? 70001 : 4099;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, most}) {
      const double own = 4 * (me + 1);
      auto array = places.filled(count, dtype, own);
      const WindowSpec spec = exponential(me, size, count, dtype, nullptr);
      const auto window = places.open(spec, array);
      double sources = 0;
      for (const int source : spec.sources) sources += 4 * (source + 1);
      const auto check = [&](const char* what, const PlacedArray& of, double want) {
        const std::string wrong = of.wrong(want);
        return wrong.empty() ? wrong : what + (": " + wrong);
      };
      // Of its own array, then of another.
      window->put(window->data(), all(spec.destinations), 1, false, false, deadline);
      const auto other = places.filled(count, dtype, own);
      window->put(other->data(), all(spec.destinations), 1, true, false, deadline);
      comm.barrier();
      const std::vector<std::uint64_t> once(spec.sources.size(), 1);
      if (window->versions() != once) return "a put and a sum are not one version";
      for (const char* what : {"put", "reset"}) {
        const bool first = what[0] == 'p';
        window->update(nullptr, 1, all(spec.sources), 1, first, false, deadline);
        if (auto wrong = check(what, *array, own + 2 * sources); !wrong.empty()) return wrong;
      }
      // What the program writes into the array is what neighbors get.
      array->fill(own);
      comm.barrier();
      window->get(all(spec.sources), false, deadline);
      if (window->versions() != once) return "a get is not a version";
      comm.barrier();
      window->update(other->data(), 1, all(spec.sources), 4, false, false, deadline);
      if (auto wrong = check("get", *other, own / 4 + sources / 4); !wrong.empty()) return wrong;
      window->free({});
    }
  }
  return {};
}

/// What goes round by parts: weights, and p beside the data; nothing is lost. In the end, half.
inline std::string windowsKeepTheSum(Communicator& comm, const Places& places) {
  const int me = comm.heldRanks()[0];
  const int size = comm.size();
  const Deadline deadline = Deadline::in(60000);
  constexpr std::size_t kCount = 300;
  auto array = places.filled(kCount, DType::float64, me + 1);
  const WindowSpec spec = exponential(me, size, kCount, DType::float64, nullptr);
  const auto window = places.open(spec, array);
  const double share = 1.0 / static_cast<double>(spec.destinations.size() + 1);
  for (int step = 0; step < 20; ++step) {
    window->put(window->data(), all(spec.destinations, share), share, true, true, deadline);
    window->update(nullptr, 1, all(spec.sources), 1, true, true, deadline);
  }
  comm.barrier();
  window->update(nullptr, 1, all(spec.sources), 2, true, true, deadline);
  const auto p = places.filled(1, DType::float64, window->p());
  const auto summed = [&](const PlacedArray& own, std::size_t count, double want) {
    const auto sums = places.make(count, DType::float64);
    const void* const in[] = {own.data()};
    void* const out[] = {sums->data()};
    comm.allReduce({in, out}, count, DType::float64, ReduceOp::sum);
    std::vector<double> got(count);
    sums->read(got.data());
    for (const double sum : got) {
      if (std::abs(sum - want) > 1e-9 * want) return "a sum became " + std::to_string(sum);
    }
    return std::string();
  };
  std::string wrong = summed(*array, kCount, size * (size + 1) / 4.0);
  wrong += summed(*p, 1, size / 2.0);
  window->free({});
  return wrong;
}

/// Rank 0 waits in a receive all the time: what comes needs nothing of its calls.
inline std::string windowsNeedNothingOfTheTarget(Communicator& comm, const Places& places) {
  const int me = comm.heldRanks()[0];
  const int size = comm.size();
  const Deadline deadline = Deadline::in(60000);
  constexpr std::size_t kCount = 100'000;
  constexpr int kPuts = 5;
  WindowSpec spec;
  auto array = places.filled(kCount, DType::float32, 100 + me);
  spec.count = kCount;
  spec.zeroInit = true;
  for (int r = 1; r < size; ++r) {
    if (me != 0 && r != me) continue;
    // Rank 0 is read, too.
    spec.sources.push_back(me == 0 ? r : 0);
    spec.destinations.push_back(me == 0 ? r : 0);
  }
  const auto window = places.open(spec, array);
  const auto token = places.filled(1, DType::float32, 0);
  std::string wrong;
  if (me == 0) {
    for (int r = 1; r < size; ++r) comm.receive(token->data(), 1, DType::float32, r, 0);
    for (const std::uint64_t version : window->versions()) {
      if (version != kPuts) wrong = "a version is " + std::to_string(version);
    }
    double want = 0;
    for (int r = 1; r < size; ++r) want += 10 * r;
    window->update(nullptr, 0, all(spec.sources), 1, false, false, deadline);
    if (wrong.empty()) wrong = array->wrong(want);
  } else {
    const auto values = places.filled(kCount, DType::float32, 10 * me);
    for (int i = 0; i < kPuts; ++i) {
      window->put(values->data(), all({0}), 1, false, false, deadline);
    }
    window->get(all({0}), false, deadline);
    window->update(nullptr, 0, all({0}, 0.5), 1, false, false, deadline);
    wrong = array->wrong(50);
    comm.send(token->data(), 1, DType::float32, 0, 0);
  }
  comm.barrier();
  window->free({});
  return wrong;
}

/// The owner and each other rank have a lock of their own.
inline std::string windowsLock(Communicator& comm, const Places& places) {
  const int me = comm.heldRanks()[0];
  const int size = comm.size();
  auto array = places.filled(1, DType::float32, 0);
  const auto window = places.open(exponential(me, size, 1, DType::float32, nullptr), array);
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

/// What each of three ranks throws of a window on which rank 2 has another count, or another list.
inline void openWhatDiffers(Communicator& comm, bool otherCount) {
  const int rank = comm.heldRanks()[0];
  const auto initial = filled(8, DType::float32, 1);
  const WindowSpec spec = exponential(rank, 3, 8, DType::float32, initial.data());
  WindowSpec other = spec;
  if (rank == 2 && otherCount) other.count = 7;
  if (rank == 2 && !otherCount) other.destinations.pop_back();
  try {
    comm.openWindow(other);
  } catch (const Error& error) {
    // Nothing is left of it.
    const auto window = comm.openWindow(spec);
    const bool fresh = error.usable && window->p() == 1;
    window->free({});
    if (fresh) throw;
  }
}

/// All of it.
inline std::string windowsWork(Communicator& comm, const Places& places) {
  for (const auto body : {windowsMoveEveryType, windowsKeepTheSum, windowsLock}) {
    if (std::string wrong = body(comm, places); !wrong.empty()) return wrong;
  }
  return comm.size() == 1 ? "" : windowsNeedNothingOfTheTarget(comm, places);
}

/// Of everything that neighbors exchange: each rank's count is its number.
inline std::string neighborsGather(Communicator& comm, const Places& places) {
  const int me = comm.heldRanks()[0];
  for (const DType dtype : {DType::int32, DType::float16, DType::float32, DType::float64}) {
    for (const std::size_t unit : {std::size_t{1}, std::size_t{30'011}}) {
      const auto countOf = [&](int rank) { return unit * static_cast<std::size_t>(rank); };
      const WindowSpec graph = exponential(me, comm.size(), 0, dtype, nullptr);
      std::vector<NeighborBlock> sources;
      std::size_t total = 0;
      for (const int source : graph.sources) {
        sources.push_back({source, countOf(source)});
        total += countOf(source);
      }
      const auto bytesOf = [&](int rank) {
        std::vector<std::uint8_t> bytes(countOf(rank) * sizeOf(dtype));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + static_cast<std::size_t>(rank));
        }
        return bytes;
      };
      const auto in = places.make(countOf(me), dtype);
      in->write(bytesOf(me).data());
      // One element more, which is not written.
      const auto out = places.make(total + 1, dtype);
      std::vector<std::uint8_t> got((total + 1) * sizeOf(dtype), 0xee);
      out->write(got.data());
      comm.neighborAllGather(in->data(), countOf(me), dtype, out->data(), sources,
                             graph.destinations, {});
      std::vector<std::uint8_t> want;
      for (const NeighborBlock& source : sources) {
        const auto bytes = bytesOf(source.rank);
        want.insert(want.end(), bytes.begin(), bytes.end());
      }
      want.resize(got.size(), 0xee);
      out->read(got.data());
      if (got != want) return nameOf(dtype) + (" in units of " + std::to_string(unit));
    }
  }
  return {};
}

}  // namespace gradlink::test
