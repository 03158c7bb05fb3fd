// Averaging with some ranks: one group of messages, then each GPU's weighted sum. And windows.
#include "cuda/kernel_module.h"
#include "cuda/ranks/window_memory.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

std::size_t strangers(const WeightRow& row) { return row.terms.size() - 1; }

}  // namespace

Neighbors::Neighbors(const Comms& comms) {
  for (const auto& member : comms.members()) {
    Inbox& place = places_.emplace_back();
    place.ring = std::make_unique<cuda::TaskRing>(member->stream);
  }
}

char* Neighbors::inbox(std::size_t member, cuda::Device& device, std::size_t bytes) {
  cuda::DeviceMemory& inbox = places_[member].inbox;
  if (inbox.bytes() < bytes) {
    inbox = cuda::DeviceMemory();
    inbox = cuda::DeviceMemory(device, bytes);
  }
  return static_cast<char*>(inbox.data());
}

void Ranks::neighborAllReduce(const Call& call) {
  const Shape& shape = call.shape;
  const auto neighborhoods = call.neighborhoods;
  guarded(call.op(), call.options, [&](const Watch& watch) {
    checkBuffers(shape, call.buffers);
    if (neighborhoods.size() != ranks_.size()) {
      throw misuse(watch.op, "expected " + std::to_string(ranks_.size()) +
                                 " neighborhoods, one for each rank held, got " +
                                 std::to_string(neighborhoods.size()));
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      checkNeighborhood(neighborhoods[i], ranks_[i], size_);
    }
    // Before the others continue: their kernels may spin, and an allocation would wait for them.
    if (!neighbors_) neighbors_ = std::make_unique<Neighbors>(core_->comms);
    cuda::loadKernels(devices_, {"weighted"});
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      neighbors_->inbox(i, *devices_[i],
                        neighborhoods[i].sources.size() * shape.count * sizeOf(shape.dtype));
    }
    agree(shape, watch);
    const std::vector<WeightRow> rows = weightRows(neighborhoods, watch);
    if (shape.count == 0) return;
    runNeighbors(shape, call.buffers, neighborhoods, rows, watch);
  });
}

void Ranks::runNeighbors(const Shape& shape, const Buffers& buffers,
                         std::span<const Neighborhood> neighborhoods,
                         std::span<const WeightRow> rows, const Watch& watch) {
  const std::size_t bytes = shape.count * sizeOf(shape.dtype);
  const int type = abi::typeOf(shape.dtype);
  std::vector<char*> inboxes;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const WeightRow& row = rows[static_cast<std::size_t>(ranks_[i])];
    inboxes.push_back(neighbors_->inbox(i, *devices_[i], strangers(row) * bytes));
  }
  meet(watch);
  const auto inFlight = core_->comms.inFlight(watch);
  core_->comms.group(watch, [&](std::size_t i) {
    abi::CommHandle comm = core_->comms.members()[i]->handle;
    cuda::StreamHandle stream = streams_[i]->handle();
    abi::Result result = abi::kSuccess;
    char* next = inboxes[i];
    for (const auto& [source, weight] : rows[static_cast<std::size_t>(ranks_[i])].terms) {
      if (source == ranks_[i] || isFailure(result)) continue;
      result = library_.recv(next, shape.count, type, source, comm, stream);
      next += bytes;
    }
    for (int to = 0; to < size_; ++to) {
      for (const auto& [source, weight] : rows[static_cast<std::size_t>(to)].terms) {
        if (source != ranks_[i] || to == source || isFailure(result)) continue;
        result = library_.send(buffers.in[i], shape.count, type, to, comm, stream);
      }
    }
    return result;
  });
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    std::vector<const void*> from;
    std::vector<double> weights;
    const char* next = inboxes[i];
    // The kernel does not divide: the weights include the divisor.
    const auto divisor = static_cast<double>(neighborhoods[i].divisor);
    for (const auto& [source, weight] : rows[static_cast<std::size_t>(ranks_[i])].terms) {
      const bool own = source == ranks_[i];
      from.push_back(own ? buffers.in[i] : next);
      weights.push_back(weight / divisor);
      if (!own) next += bytes;
    }
    cuda::weightedSum(*streams_[i], neighbors_->ring(i), shape.dtype, buffers.out[i], from, weights,
                      shape.count);
  }
  core_->comms.finish(watch, streams_);
}

std::vector<WeightRow> Ranks::weightRows(std::span<const Neighborhood> own, const Watch& watch) {
  const std::size_t bytes = neighborRowBytes(size_);
  std::vector<std::byte> mine(own.size() * bytes);
  for (std::size_t i = 0; i < own.size(); ++i) {
    writeNeighborRow(mine.data() + i * bytes, own[i], size_);
  }
  std::vector<std::byte> all(static_cast<std::size_t>(size_) * bytes);
  exchange(mine.data(), all.data(), bytes, watch);
  return resolveNeighborRows(
      size_, [&](int r) { return all.data() + static_cast<std::size_t>(r) * bytes; });
}

std::unique_ptr<Window> Ranks::openWindow(const WindowSpec& spec, const CallOptions& options) {
  needOneRank("createWindow");
  return std::move(openWindows({&spec, 1}, options).front());
}

std::vector<std::unique_ptr<Window>> Ranks::openWindows(std::span<const WindowSpec> specs,
                                                        const CallOptions& options) {
  std::vector<std::unique_ptr<Window>> made;
  guarded("createWindow", options, [&](const Watch& watch) {
    if (specs.size() != ranks_.size()) {
      throw misuse(watch.op, "expected " + std::to_string(ranks_.size()) +
                                 " windows, one for each rank held, got " +
                                 std::to_string(specs.size()));
    }
    if (!control_ && !holdsAll()) {
      throw unsupported(
          watch.op,
          "NCCL alone cannot serve requests of neighbors; join with a control communicator");
    }
    WindowRanks ranks;
    ranks.held = ranks_;
    for (int r = 0; r < size_; ++r) {
      ranks.holders.push_back(processes_ ? processes_->holder(r) : holdsAll() ? 0 : r);
    }
    ranks.all = control_ == nullptr;
    ranks.exchange = exchangeWithin(watch);
    Communicator& over = control_ ? *control_ : *this;
    made = cuda::openWindows(windows_, over, ranks, devices_, specs, {.timeoutMs = watch.leftMs()});
  });
  return made;
}

}  // namespace gradlink::nccl
