// Exchanges with some of the ranks: what they send travels as one group of messages, then each GPU
// weighs and sums what it got.
#include <cmath>
#include <limits>

#include "cuda/kernel_module.h"
#include "cuda/ranks/window_memory.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

/// Inputs of other ranks that a row asks for.
std::size_t strangers(const WeightRow& row) { return row.size() - 1; }

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

void Ranks::neighborAllReduce(const Buffers& buffers, std::size_t count, DType dtype,
                              std::span<const Neighborhood> neighborhoods,
                              const CallOptions& options) {
  const Shape shape{Kind::neighborAllReduce, dtype, ReduceOp::sum, 0, count};
  guarded(nameOf(shape.kind), options, [&](const Watch& watch) {
    checkBuffers(shape, buffers);
    if (neighborhoods.size() != ranks_.size()) {
      throw misuse(watch.op, "expected " + std::to_string(ranks_.size()) +
                                 " neighborhoods, one for each rank held, got " +
                                 std::to_string(neighborhoods.size()));
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      checkNeighborhood(neighborhoods[i], ranks_[i], size_);
    }
    // Before the others go on: their kernels may spin, and an allocation would wait for them.
    if (!neighbors_) neighbors_ = std::make_unique<Neighbors>(core_->comms);
    cuda::loadKernels(devices_, false);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      neighbors_->inbox(i, *devices_[i], neighborhoods[i].sources.size() * count * sizeOf(dtype));
    }
    agree(shape, watch);
    const std::vector<WeightRow> rows = resolveNeighbors(allNeighborhoods(neighborhoods, watch));
    if (count == 0) return;
    runNeighbors(shape, buffers, rows, watch);
  });
}

void Ranks::runNeighbors(const Shape& shape, const Buffers& buffers,
                         std::span<const WeightRow> rows, const Watch& watch) {
  const std::size_t bytes = shape.count * sizeOf(shape.dtype);
  const int type = abi::typeOf(shape.dtype);
  std::vector<char*> inboxes;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const WeightRow& row = rows[static_cast<std::size_t>(ranks_[i])];
    inboxes.push_back(neighbors_->inbox(i, *devices_[i], strangers(row) * bytes));
  }
  core_->comms.group(watch, [&](std::size_t i) {
    abi::CommHandle comm = core_->comms.members()[i]->handle;
    cuda::StreamHandle stream = streams_[i]->handle();
    abi::Result result = abi::kSuccess;
    char* next = inboxes[i];
    for (const auto& [source, weight] : rows[static_cast<std::size_t>(ranks_[i])]) {
      if (source == ranks_[i] || isFailure(result)) continue;
      result = library_.recv(next, shape.count, type, source, comm, stream);
      next += bytes;
    }
    for (int to = 0; to < size_; ++to) {
      for (const auto& [source, weight] : rows[static_cast<std::size_t>(to)]) {
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
    for (const auto& [source, weight] : rows[static_cast<std::size_t>(ranks_[i])]) {
      const bool own = source == ranks_[i];
      from.push_back(own ? buffers.in[i] : next);
      weights.push_back(weight);
      if (!own) next += bytes;
    }
    cuda::Kernels::of(*devices_[i])
        .weightedSum(*streams_[i], neighbors_->ring(i), shape.dtype, buffers.out[i], from, weights,
                     shape.count);
  }
  core_->comms.finish(watch, streams_);
}

// A table row of doubles a rank: its own weight, then its weights as a source's receiver and as a
// sender, NaN where there is none.
std::vector<Neighborhood> Ranks::allNeighborhoods(std::span<const Neighborhood> own,
                                                  const Watch& watch) {
  if (holdsAll()) return {own.begin(), own.end()};
  const auto n = static_cast<std::size_t>(size_);
  const std::size_t width = 1 + 2 * n;
  std::vector<double> mine(width, std::numeric_limits<double>::quiet_NaN());
  mine[0] = own[0].selfWeight;
  for (const Neighbor& s : own[0].sources) mine[1 + static_cast<std::size_t>(s.rank)] = s.weight;
  for (const Neighbor& d : own[0].destinations) {
    mine[1 + n + static_cast<std::size_t>(d.rank)] = d.weight;
  }
  std::vector<double> rows(n * width);
  exchange(mine.data(), rows.data(), width * sizeof(double), watch);
  std::vector<Neighborhood> all(n);
  for (std::size_t r = 0; r < n; ++r) {
    const double* row = rows.data() + r * width;
    all[r].selfWeight = row[0];
    for (std::size_t p = 0; p < n; ++p) {
      const int peer = static_cast<int>(p);
      if (!std::isnan(row[1 + p])) all[r].sources.push_back({peer, row[1 + p]});
      if (!std::isnan(row[1 + n + p])) all[r].destinations.push_back({peer, row[1 + n + p]});
    }
  }
  return all;
}

void Ranks::neighborAllGather(const void* in, std::size_t count, DType dtype, void* out,
                              std::span<const NeighborBlock> sources,
                              std::span<const int> destinations, const CallOptions& options) {
  guarded("neighborAllGather", options, [&](const Watch& watch) {
    needOneRank(watch.op);
    checkType(watch.op, dtype, false);
    const NeighborTable table(
        ranks_.front(), size_, count, dtype, sources, destinations,
        [&](const void* own, void* all, std::size_t bytes) { exchange(own, all, bytes, watch); });
    const int type = abi::movedAs(dtype);
    core_->comms.group(watch, [&](std::size_t i) {
      abi::CommHandle comm = core_->comms.members()[i]->handle;
      cuda::StreamHandle stream = streams_[i]->handle();
      abi::Result result = abi::kSuccess;
      for (const int to : destinations) {
        if (count == 0 || isFailure(result)) continue;
        result = library_.send(in, count, type, to, comm, stream);
      }
      char* next = static_cast<char*>(out);
      for (const NeighborBlock& from : sources) {
        if (from.count == 0 || isFailure(result)) continue;
        result = library_.recv(next, from.count, type, from.rank, comm, stream);
        next += from.count * sizeOf(dtype);
      }
      return result;
    });
    core_->comms.finish(watch, streams_);
  });
}

void Ranks::pairGossip(const void* in, void* out, std::size_t count, DType dtype, int peer,
                       double selfWeight, double pairWeight, const CallOptions& options) {
  guarded("pairGossip", options, [&](const Watch& watch) {
    checkMessage(watch.op, dtype, peer, 0);
    if (dtype < DType::float16 || isFloat8(dtype)) {
      throw misuse(watch.op, std::string("weights need a float type, not ") + nameOf(dtype));
    }
    // Before the peer goes on: its kernel may spin, and an allocation would wait for it.
    if (!neighbors_) neighbors_ = std::make_unique<Neighbors>(core_->comms);
    char* const inbox = neighbors_->inbox(0, *devices_.front(), count * sizeOf(dtype));
    cuda::Kernels& kernels = cuda::Kernels::of(*devices_.front());
    agreeWith(peer, {Kind::neighborAllReduce, dtype, ReduceOp::sum, 0, count}, watch);
    if (count == 0) return;
    const int type = abi::typeOf(dtype);
    core_->comms.group(watch, [&](std::size_t i) {
      abi::CommHandle comm = core_->comms.members()[i]->handle;
      const abi::Result sent = library_.send(in, count, type, peer, comm, streams_[i]->handle());
      if (isFailure(sent)) return sent;
      return library_.recv(inbox, count, type, peer, comm, streams_[i]->handle());
    });
    const void* const from[] = {in, inbox};
    const double weights[] = {selfWeight, pairWeight};
    kernels.weightedSum(*streams_.front(), neighbors_->ring(0), dtype, out, from, weights, count);
    core_->comms.finish(watch, streams_);
  });
}

void Ranks::agreeWith(int peer, const Shape& shape, const Watch& watch) {
  // Without it NCCL alone is there, which sends no envelopes.
  if (!control_) return;
  const CallOptions rest{.timeoutMs = watch.leftMs()};
  const std::uint64_t own[] = {shape.count, static_cast<std::uint64_t>(shape.dtype)};
  std::uint64_t theirs[] = {0, 0};
  const bool first = ranks_.front() < peer;
  if (first) control_->send(own, 2, DType::uint64, peer, 0, rest);
  control_->receive(theirs, 2, DType::uint64, peer, 0, rest);
  if (!first) control_->send(own, 2, DType::uint64, peer, 0, rest);
  if (own[0] == theirs[0] && own[1] == theirs[1]) return;
  const auto brings = [&](int rank, const std::uint64_t(&what)[2]) {
    return "rank " + std::to_string(rank) + " brings " + std::to_string(what[0]) + " " +
           nameOf(static_cast<DType>(what[1]));
  };
  const std::string mine = brings(ranks_.front(), own);
  const std::string other = brings(peer, theirs);
  throw harmless(ErrorCode::mismatch, watch.op,
                 (first ? mine : other) + ", " + (first ? other : mine) +
                     ". Both must bring as many elements of one type")
      .withRank(peer);
}

std::unique_ptr<Window> Ranks::openWindow(const WindowSpec& spec, const CallOptions& options) {
  std::unique_ptr<Window> made;
  guarded("createWindow", options, [&](const Watch& watch) {
    needOneRank(watch.op);
    if (!control_) {
      throw unsupported(
          watch.op,
          "the ranks need a way beside NCCL, over which their neighbors reach them; join "
          "with a control communicator");
    }
    made = cuda::openWindow(windows_, *control_, *devices_.front(), spec,
                            {.timeoutMs = watch.leftMs()});
  });
  return made;
}

}  // namespace gradlink::nccl
