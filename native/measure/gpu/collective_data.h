// The arrays of one collective on GPUs: allocated, filled and checked there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/kernels.h"
#include "cuda/memory.h"
#include "measure/gpu/collective.h"

namespace gradlink::measure {

class GpuCollectiveData {
 public:
  GpuCollectiveData(nccl::NcclCommunicator&, const GpuCollectiveOptions&, const CollectiveRecord&);
  /// Waits until nothing uses the memory.
  ~GpuCollectiveData();
  GpuCollectiveData(const GpuCollectiveData&) = delete;
  GpuCollectiveData& operator=(const GpuCollectiveData&) = delete;

  Buffers buffers() const { return {in_, out_}; }
  /// The buffers of call number `call`, from 0, if successive calls use successive arrays.
  Buffers buffersOf(int call);
  /// One for each held rank.
  std::span<cuda::Stream* const> streams() const { return streamPointers_; }
  /// Writes every held rank's input. Out of place, also overwrites the outputs. Waits.
  void fill();
  /// Of the held ranks' outputs. These wait, too.
  std::uint64_t countWrong();
  std::optional<WrongElement> firstWrong();
  std::uint64_t countIn(std::size_t held, const Segment&, std::size_t from, std::size_t count);
  std::uint64_t bitsAt(std::size_t held, std::size_t index);
  /// Registers all memory; returns the actual kind.
  nccl::RegistrationKind registerAll(nccl::RegistrationKind, const CallOptions&);

 private:
  std::size_t bytesOf(std::size_t blocks) const;
  char* add(cuda::Device&, std::size_t bytes);
  Pattern pattern() const { return {options_.dtype, patternOp_, comm_.size(), options_.seed}; }
  const char* at(std::size_t held, std::size_t index) const;
  /// For a part that reduces some of the ranks.
  std::uint64_t countWrongOnHost(cuda::Stream&, const void* got, std::size_t first,
                                 std::size_t count, int ranks) const;
  void synchronize();

  nccl::NcclCommunicator& comm_;
  const GpuCollectiveOptions& options_;
  const CollectiveRecord& record_;
  ReduceOp patternOp_;
  std::vector<std::unique_ptr<cuda::Stream>> streams_;
  std::vector<cuda::Stream*> streamPointers_;
  /// One array for each held rank; in place the other one is empty.
  std::vector<nccl::Memory> memory_;
  std::vector<std::unique_ptr<nccl::Registration>> registrations_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<const void*> shiftedIn_;
  std::vector<void*> shiftedOut_;
  cuda::PinnedMemory wrong_{sizeof(std::uint64_t)};
};

}  // namespace gradlink::measure
