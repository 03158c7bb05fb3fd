#include "measure/gpu/collective_data.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "cuda/kernel_module.h"
#include "measure/pattern.h"
#include "measure/wrong_elements.h"

namespace gradlink::measure {

GpuCollectiveData::GpuCollectiveData(nccl::NcclCommunicator& comm,
                                     const GpuCollectiveOptions& options,
                                     const CollectiveRecord& record)
    : comm_(comm),
      options_(options),
      record_(record),
      // Copies use the pattern of max, whose values span the whole type.
      patternOp_(record.reduces() ? options.op : ReduceOp::max) {
  const std::size_t blockBytes = options.count * sizeOf(options.dtype);
  // Otherwise loaded while others wait in a collective.
  cuda::loadKernels(comm.devices(), {"diagnostics", "pattern"});
  for (std::size_t i = 0; i < comm.devices().size(); ++i) {
    cuda::Device& device = *comm.devices()[i];
    streams_.push_back(std::make_unique<cuda::Stream>(device));
    streamPointers_.push_back(streams_.back().get());
    const std::size_t inside = static_cast<std::size_t>(comm.heldRanks()[i]) * blockBytes;
    if (!options.inPlace) {
      in_.push_back(add(device, bytesOf(record.inputBlocks(comm.size()))));
      out_.push_back(add(device, bytesOf(record.outputBlocks(comm.size()))));
    } else if (record.inPlace == InPlace::inInsideOut) {
      char* const out = add(device, bytesOf(record.outputBlocks(comm.size())));
      in_.push_back(out + inside);
      out_.push_back(out);
    } else {
      char* const in = add(device, bytesOf(record.inputBlocks(comm.size())));
      in_.push_back(in);
      out_.push_back(record.inPlace == InPlace::outInsideIn ? in + inside : in);
    }
  }
  fill();
}

GpuCollectiveData::~GpuCollectiveData() {
  try {
    synchronize();
  } catch (const Error&) {
    // The error that ended the work has been thrown already.
  }
}

std::size_t GpuCollectiveData::bytesOf(std::size_t blocks) const {
  return blocks * options_.count * sizeOf(options_.dtype);
}

Buffers GpuCollectiveData::buffersOf(int call) {
  const std::size_t bytes = std::max(bytesOf(record_.inputBlocks(comm_.size())),
                                     bytesOf(record_.outputBlocks(comm_.size())));
  const std::size_t places = std::max<std::size_t>(options_.shiftedThrough / bytes, 1);
  const std::size_t shift = bytes * (static_cast<std::size_t>(call) % places);
  shiftedIn_.clear();
  shiftedOut_.clear();
  for (const void* in : in_) shiftedIn_.push_back(static_cast<const char*>(in) + shift);
  for (void* out : out_) shiftedOut_.push_back(static_cast<char*>(out) + shift);
  return {shiftedIn_, shiftedOut_};
}

char* GpuCollectiveData::add(cuda::Device& device, std::size_t bytes) {
  const std::size_t before = options_.unalign * sizeOf(options_.dtype);
  memory_.emplace_back(device, before + std::max(bytes, options_.shiftedThrough));
  return static_cast<char*>(memory_.back().data()) + before;
}

void GpuCollectiveData::synchronize() {
  for (const auto& stream : streams_) stream->synchronize();
}

void GpuCollectiveData::fill() {
  const std::size_t inputs = record_.inputBlocks(comm_.size()) * options_.count;
  const std::size_t outputs = record_.outputBlocks(comm_.size()) * options_.count;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    // Other data, so an earlier result cannot pass.
    if (!options_.inPlace) {
      cuda::fillPattern(*streams_[i], out_[i], 0, outputs, options_.dtype, ReduceOp::max,
                        comm_.size(), options_.seed + 1, 0);
    }
    cuda::fillPattern(*streams_[i], const_cast<void*>(in_[i]), 0, inputs, options_.dtype,
                      patternOp_, comm_.size(), options_.seed, comm_.heldRanks()[i]);
  }
  synchronize();
}

std::uint64_t GpuCollectiveData::countWrong() {
  std::uint64_t wrong = 0;
  eachPart(comm_, options_, [&](std::size_t held, const Segment& part) {
    wrong += countIn(held, part, 0, part.count);
  });
  return wrong;
}

std::optional<WrongElement> GpuCollectiveData::firstWrong() {
  return measure::firstWrong(comm_, options_, pattern(), *this);
}

std::uint64_t GpuCollectiveData::countIn(std::size_t held, const Segment& part, std::size_t from,
                                         std::size_t count) {
  if (count == 0) return 0;
  cuda::Stream& stream = *streams_[held];
  const BlockOrigin& origin = part.origin;
  const char* const got = at(held, part.begin + from);
  if (origin.reducedRanks && *origin.reducedRanks != comm_.size()) {
    return countWrongOnHost(stream, got, part.first + from, count, *origin.reducedRanks);
  }
  auto* const wrong = static_cast<std::uint64_t*>(wrong_.data());
  *wrong = 0;
  cuda::countWrong(stream, got, part.first + from, count, options_.dtype, patternOp_, comm_.size(),
                   options_.seed, origin.reducedRanks ? -1 : origin.rank, wrong);
  stream.synchronize();
  return *wrong;
}

std::uint64_t GpuCollectiveData::bitsAt(std::size_t held, std::size_t index) {
  std::uint64_t bits = 0;
  streams_[held]->copy(&bits, at(held, index), sizeOf(options_.dtype));
  streams_[held]->synchronize();
  return bits;
}

const char* GpuCollectiveData::at(std::size_t held, std::size_t index) const {
  return static_cast<const char*>(out_[held]) + index * sizeOf(options_.dtype);
}

// The kernel checks the reduction of all ranks only.
std::uint64_t GpuCollectiveData::countWrongOnHost(cuda::Stream& stream, const void* got,
                                                  std::size_t first, std::size_t count,
                                                  int ranks) const {
  std::vector<std::byte> there(count * sizeOf(options_.dtype));
  stream.copy(there.data(), got, there.size());
  stream.synchronize();
  return countWrongReduction(there.data(), first, count, pattern(), ranks);
}

nccl::RegistrationKind GpuCollectiveData::registerAll(nccl::RegistrationKind kind,
                                                      const CallOptions& call) {
  const std::size_t held = streams_.size();
  const std::size_t arrays = memory_.size() / held;
  nccl::RegistrationKind became = kind;
  for (std::size_t array = 0; array < arrays; ++array) {
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < held; ++i) pointers.push_back(memory_[i * arrays + array].data());
    registrations_.push_back(comm_.registerMemory(pointers, memory_[array].bytes(), kind, call));
    became = registrations_.back()->kind();
  }
  return became;
}

}  // namespace gradlink::measure
