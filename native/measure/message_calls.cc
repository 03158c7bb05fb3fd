#include "measure/message_calls.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/kernels/copy_bytes.h"

namespace gradlink::measure {
namespace {

constexpr int kMessageCallTag = 0;
/// Parts are multiples of this many bytes, as in nccl-tests.
constexpr std::size_t kPartUnit = 16;

bool isPowerOfTwo(int n) { return (n & (n - 1)) == 0; }

void copyOwn(const Shape& shape, void* to, const void* from) {
  if (to != from) copyBytes(to, from, shape.count * sizeOf(shape.dtype));
}

}  // namespace

std::size_t partOf(int from, int to, std::size_t count, DType dtype, int n) {
  const std::size_t element = sizeOf(dtype);
  const auto ranks = static_cast<std::size_t>(n);
  const std::size_t total = count * ranks * element;
  std::size_t bytes = total;
  if (n > 1) {
    const auto distance = static_cast<std::size_t>((to - from + n) % n);
    const std::size_t distances = ranks * (ranks - 1) / 2;
    bytes = static_cast<std::size_t>(static_cast<double>(distance) * static_cast<double>(total) /
                                     static_cast<double>(distances));
  }
  return bytes / kPartUnit * kPartUnit / element;
}

std::size_t partSource(int from, int to, std::size_t count, DType dtype, int n) {
  std::size_t begin = 0;
  for (int r = 0; r < to; ++r) begin += partOf(from, r, count, dtype, n);
  return begin;
}

std::size_t partTarget(int from, int to, std::size_t count, DType dtype, int n) {
  std::size_t begin = 0;
  for (int r = 0; r < from; ++r) begin += partOf(r, to, count, dtype, n);
  return begin;
}

MessageSteps ringMessages(std::size_t count, DType, int n) {
  MessageSteps steps(1);
  for (int r = 0; r < n; ++r) steps[0].push_back({.from = r, .to = (r + 1) % n, .count = count});
  return steps;
}

MessageSteps partMessages(std::size_t count, DType dtype, int n) {
  MessageSteps steps(1);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      const std::size_t part = partOf(from, to, count, dtype, n);
      if (part == 0) continue;
      steps[0].push_back({.from = from,
                          .to = to,
                          .count = part,
                          .source = partSource(from, to, count, dtype, n),
                          .target = partTarget(from, to, count, dtype, n)});
    }
  }
  return steps;
}

MessageSteps cubeMessages(std::size_t count, DType, int n) {
  if (!isPowerOfTwo(n)) throw misuse("hypercube", "expected a power of two ranks");
  MessageSteps steps(1);
  for (int r = 0; r < n; ++r) {
    const std::size_t own = static_cast<std::size_t>(r) * count;
    steps[0].push_back({.from = r, .to = r, .count = count, .target = own, .isCopy = true});
  }
  for (int mask = 1; mask < n; mask *= 2) {
    std::vector<PlannedMessage>& step = steps.emplace_back();
    for (int r = 0; r < n; ++r) {
      const std::size_t begin = static_cast<std::size_t>(r & ~(mask - 1)) * count;
      step.push_back({.from = r,
                      .to = r ^ mask,
                      .count = count * static_cast<std::size_t>(mask),
                      .source = begin,
                      .ofOutput = true,
                      .target = begin});
    }
  }
  return steps;
}

void passRing(Communicator& comm, const Shape& shape, const Buffers& buffers,
              const CallOptions& options) {
  const int n = comm.size();
  const int rank = comm.heldRanks()[0];
  if (n == 1) return copyOwn(shape, buffers.out[0], buffers.in[0]);
  const auto send = [&] {
    comm.send(buffers.in[0], shape.count, shape.dtype, (rank + 1) % n, kMessageCallTag, options);
  };
  const auto receive = [&] {
    comm.receive(buffers.out[0], shape.count, shape.dtype, (rank + n - 1) % n, kMessageCallTag,
                 options);
  };
  // Odd ranks receive first: a send may wait for its receive, so a ring of sends would deadlock.
  if (rank % 2 != 0) {
    receive();
    send();
  } else {
    send();
    receive();
  }
}

void passParts(Communicator& comm, const Shape& shape, const Buffers& buffers,
               const CallOptions& options) {
  const int n = comm.size();
  Counted counted;
  const auto held = comm.heldRanks();
  for (std::size_t i = 0; i < held.size(); ++i) {
    CountedPart& part = counted.parts.emplace_back();
    part.in = buffers.in[i];
    part.out = buffers.out[i];
    part.capacity = shape.count * static_cast<std::size_t>(n);
    part.hasPlace = true;
    for (int r = 0; r < n; ++r) {
      part.sent.push_back(partOf(held[i], r, shape.count, shape.dtype, n));
    }
  }
  comm.counted({Kind::allToAllV, shape.dtype}, counted, options);
}

void passCube(Communicator& comm, const Shape& shape, const Buffers& buffers,
              const CallOptions& options) {
  const int n = comm.size();
  const int rank = comm.heldRanks()[0];
  if (!isPowerOfTwo(n)) {
    throw misuse("hypercube", "expected a power of two ranks, got " + std::to_string(n));
  }
  const std::size_t block = shape.count * sizeOf(shape.dtype);
  auto* const out = static_cast<std::byte*>(buffers.out[0]);
  copyOwn(shape, out + static_cast<std::size_t>(rank) * block, buffers.in[0]);
  for (int mask = 1; mask < n; mask *= 2) {
    const int peer = rank ^ mask;
    const int own = rank & ~(mask - 1);
    const std::size_t count = shape.count * static_cast<std::size_t>(mask);
    const auto at = [&](int first) { return out + static_cast<std::size_t>(first) * block; };
    const auto send = [&] {
      comm.send(at(own), count, shape.dtype, peer, kMessageCallTag, options);
    };
    if (rank < peer) send();
    comm.receive(at(own ^ mask), count, shape.dtype, peer, kMessageCallTag, options);
    if (rank > peer) send();
  }
}

}  // namespace gradlink::measure
