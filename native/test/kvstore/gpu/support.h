// What tests of stores on GPUs share: the GPUs, and arrays that are on them.
#pragma once

#include <algorithm>
#include <random>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "kvstore/gpu/gpu_store.h"
#include "test/cuda/support.h"
#include "test/kvstore/support.h"

namespace gradlink::test {

/// The GPUs of a store's four devices, which differ as far as there are GPUs. NCCL takes each once.
inline std::vector<int> gpusOf(GpuMerge merge, bool oneGpu = false) {
  const int present = cuda::Device::count();
  const int devices = merge == GpuMerge::nccl ? std::min(4, present) : 4;
  std::vector<int> gpus;
  for (int i = 0; i < devices; ++i) gpus.push_back(oneGpu ? 0 : i % present);
  return gpus;
}

/// Elements of one type on one GPU.
class GpuBytes {
 public:
  GpuBytes(int gpu, const void* data, std::size_t bytes)
      : gpu_(gpu), memory_(cuda::Device::get(gpu), bytes) {
    write(data);
  }
  void write(const void* data) {
    cuda::Stream stream(cuda::Device::get(gpu_));
    stream.copy(memory_.data(), data, memory_.bytes());
    stream.synchronize();
  }
  void read(void* to) const {
    cuda::Stream stream(cuda::Device::get(gpu_));
    stream.copy(to, memory_.data(), memory_.bytes());
    stream.synchronize();
  }
  void* data() const { return memory_.data(); }
  int gpu() const { return gpu_; }

 private:
  int gpu_;
  cuda::DeviceMemory memory_;
};

/// One array a device of the store.
class GpuArrays {
 public:
  GpuArrays(const std::vector<int>& gpus, const std::vector<Floats>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      arrays_.emplace_back(gpus[i], values[i].data(), values[i].size() * sizeof(float));
      lengths_.push_back(values[i].size());
    }
  }
  GpuArrays(const std::vector<int>& gpus, const Floats& value)
      : GpuArrays(gpus, std::vector<Floats>(gpus.size(), value)) {}

  std::vector<const void*> in() const {
    std::vector<const void*> pointers;
    for (const GpuBytes& array : arrays_) pointers.push_back(array.data());
    return pointers;
  }
  std::vector<void*> out() const {
    std::vector<void*> pointers;
    for (const GpuBytes& array : arrays_) pointers.push_back(array.data());
    return pointers;
  }
  std::vector<int> gpus() const {
    std::vector<int> ordinals;
    for (const GpuBytes& array : arrays_) ordinals.push_back(array.gpu());
    return ordinals;
  }
  std::vector<Floats> read() const {
    std::vector<Floats> values;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      values.emplace_back(lengths_[i]);
      arrays_[i].read(values.back().data());
    }
    return values;
  }
  void write(const std::vector<Floats>& values) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) arrays_[i].write(values[i].data());
  }

 private:
  std::vector<GpuBytes> arrays_;
  std::vector<std::size_t> lengths_;
};

inline Operation pushOf(KeyId key, const GpuArrays& arrays, std::shared_ptr<Ticket> ticket) {
  Operation made{.kind = OperationKind::push,
                 .key = key,
                 .in = arrays.in(),
                 .inGpus = arrays.gpus(),
                 .ticket = std::move(ticket)};
  return made;
}
inline Operation pullOf(KeyId key, const GpuArrays& arrays, std::shared_ptr<Ticket> ticket) {
  Operation made{.kind = OperationKind::pull,
                 .key = key,
                 .out = arrays.out(),
                 .outGpus = arrays.gpus(),
                 .ticket = std::move(ticket)};
  return made;
}

template <class... Operations>
void runAll(Store& store, const Operations&... make) {
  waitFor([&](const auto& ticket) {
    std::vector<Operation> operations;
    (operations.push_back(make(ticket)), ...);
    store.submit(std::move(operations));
  });
}

inline void push(Store& store, KeyId key, const GpuArrays& arrays) {
  runAll(store, [&](const auto& ticket) { return pushOf(key, arrays, ticket); });
}
inline void pull(Store& store, KeyId key, const GpuArrays& arrays) {
  runAll(store, [&](const auto& ticket) { return pullOf(key, arrays, ticket); });
}

/// A push and a pull of each key, all at once.
inline void pushPullAll(Store& store, const std::vector<KeyId>& keys,
                        const std::vector<GpuArrays>& arrays) {
  waitFor([&](const auto& ticket) {
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Operation both = pushOf(keys[i], arrays[i], ticket);
      both.kind = OperationKind::pushPull;
      both.out = arrays[i].out();
      both.outGpus = both.inGpus;
      operations.push_back(std::move(both));
    }
    store.submit(std::move(operations));
  });
}

/// From host memory.
inline KeyId defineWith(Store& store, const std::string& name, const Floats& value,
                        std::size_t rowLength = 1) {
  const KeyId key = store.define(name, DType::float32, value.size(), rowLength);
  runAll(store, [&](const auto& ticket) {
    Operation made{.kind = OperationKind::init,
                   .key = key,
                   .in = {value.data()},
                   .inGpus = {-1},
                   .ticket = ticket};
    return made;
  });
  return key;
}

/// `count` numbers of a distribution; the first are drawn, and come again where that is not enough:
/// tests are compiled without optimization.
template <class Distribution>
Floats drawnFloats(std::mt19937& random, std::size_t count, Distribution of) {
  constexpr std::size_t kDrawn = 4099;
  Floats values(count);
  const std::size_t drawn = std::min(count, kDrawn);
  for (std::size_t i = 0; i < drawn; ++i) values[i] = static_cast<float>(of(random));
  for (std::size_t done = drawn; done < count; done += kDrawn) {
    std::copy_n(values.begin(), std::min(kDrawn, count - done),
                values.begin() + static_cast<std::ptrdiff_t>(done));
  }
  return values;
}

inline Floats randomFloats(std::mt19937& random, std::size_t count) {
  return drawnFloats(random, count, std::uniform_real_distribution<float>(-1, 1));
}

/// Whole numbers, of which any order gives the same sum.
inline Floats wholeFloats(std::mt19937& random, std::size_t count) {
  return drawnFloats(random, count, std::uniform_int_distribution<int>(-1000, 1000));
}

}  // namespace gradlink::test
