#include "nccl/steps.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_kernels.h"
#include "nccl/float8.h"
#include "support/environment.h"
#include "support/machine.h"

namespace gradlink::fake {
namespace {

/// What starting a collective costs, and each of its steps from rank to rank.
constexpr double kStartSeconds = 6e-6;
constexpr double kHopSeconds = 0.7e-6;
/// Sums of neighbouring chunks start at different ranks, as those of rings do: who relies on an
/// order of summation finds out.
constexpr std::size_t kChunk = 1024;

/// In the order of NCCL's numbers; float8 comes after them.
constexpr DType kTypes[] = {DType::int8,    DType::uint8,   DType::int32,   DType::uint32,
                            DType::int64,   DType::uint64,  DType::float16, DType::float32,
                            DType::float64, DType::bfloat16};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min,
                             ReduceOp::avg};
constexpr int kFloat8 = 10;
constexpr std::size_t kMostForLl = 64 << 10;

/// Sums in float32, as GPUs do.
void reduceFloat8(const std::vector<const void*>& ins, const std::vector<void*>& outs,
                  const Step& step) {
  const auto format = static_cast<Float8>(step.type - kFloat8);
  std::vector<std::vector<float>> wide(ins.size(), std::vector<float>(step.count));
  std::vector<const void*> from;
  for (std::size_t r = 0; r < ins.size(); ++r) {
    widen(format, static_cast<const std::uint8_t*>(ins[r]), wide[r].data(), step.count);
    from.push_back(wide[r].data());
  }
  std::vector<float> result(step.count);
  void* const target[] = {result.data()};
  reduceMany(target, from, step.count, DType::float32, kOps[step.op]);
  for (void* out : outs) {
    narrow(format, result.data(), static_cast<std::uint8_t*>(out), step.count);
  }
}

/// Of each million sums of a GPU that computes wrongly one has a wrong bit.
constexpr std::size_t kSumsToAWrongOne = 1'000'000;

void spoil(const std::vector<void*>& outs, const Step& step) {
  const std::size_t bytes = bytesOf(step.type);
  for (void* out : outs) {
    for (std::size_t i = 0; i < step.count; i += kSumsToAWrongOne) {
      static_cast<std::byte*>(out)[i * bytes] ^= std::byte{1};
    }
  }
}

/// outs[...][i] = the reduction of all ranks' ins[r][i].
void reduceBlock(const std::vector<const void*>& ins, const std::vector<void*>& outs,
                 const std::vector<Entry>& entries) {
  const Step& step = entries[0].step;
  if (step.type >= kFloat8) return reduceFloat8(ins, outs, step);
  const DType dtype = kTypes[step.type];
  const std::size_t bytes = sizeOf(dtype);
  const std::size_t ranks = ins.size();
  std::vector<const void*> from(ranks);
  std::vector<double> weights(ranks);
  std::vector<std::byte> result(kChunk * bytes);
  void* const target[] = {result.data()};
  for (std::size_t first = 0; first < step.count; first += kChunk) {
    const std::size_t count = std::min<std::size_t>(kChunk, step.count - first);
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t source = (first / kChunk + r) % ranks;
      from[r] = static_cast<const std::byte*>(ins[source]) + first * bytes;
      weights[r] =
          step.op == kScaledSum ? entries[source].step.scale : 1.0 / static_cast<double>(ranks);
    }
    // As NCCL does it: averages of floats are scaled sums.
    if (step.op == kScaledSum || (kOps[step.op] == ReduceOp::avg && isFloat(dtype))) {
      weightedSum(result.data(), from, weights, count, dtype);
    } else {
      reduceMany(target, from, count, dtype, kOps[step.op]);
    }
    for (void* out : outs) {
      std::memcpy(static_cast<std::byte*>(out) + first * bytes, result.data(), count * bytes);
    }
  }
}

/// Of a message over the loopback interface.
constexpr double kSocketRate = 1.5e9;

bool isOn(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

/// What the library does where it may use neither of its ways between GPUs of a host.
bool usesSockets() { return isOn("NCCL_P2P_DISABLE") && isOn("NCCL_SHM_DISABLE"); }

/// Of large messages between two GPUs.
double rateBetween(int from, int to) {
  const Machine& machine = Machine::get();
  if (from != to && usesSockets()) return kSocketRate;
  return machine.rate(from, to, from == to || machine.canReach(from, to));
}

/// Slowest link of the ring.
double ringRate(const std::vector<int>& devices, bool nominal) {
  const std::size_t n = devices.size();
  double slowest = 0;
  double fastest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double rate = rateBetween(devices[i], devices[(i + 1) % n]);
    slowest = i == 0 ? rate : std::min(slowest, rate);
    fastest = std::max(fastest, rate);
  }
  return nominal ? fastest : slowest;
}

/// Null where nothing of this is to be logged.
FILE* openLog(const char* subsystem) {
  const char* level = std::getenv("NCCL_DEBUG");
  const char* parts = std::getenv("NCCL_DEBUG_SUBSYS");
  const char* file = std::getenv("NCCL_DEBUG_FILE");
  if (level == nullptr || parts == nullptr || file == nullptr) return nullptr;
  if (std::strcmp(level, "INFO") != 0 || std::strstr(parts, subsystem) == nullptr) return nullptr;
  return std::fopen(file, "a");
}

}  // namespace

bool isType(int type) { return type >= 0 && type <= kFloat8 + 1; }

std::size_t bytesOf(int type) { return type >= kFloat8 ? 1 : sizeOf(kTypes[type]); }

/// Of what each rank has, or only the root; a block, or one for every rank.
static std::size_t bytesAt(const Step& step, int rank, int size, bool onlyRoot, bool ofAll) {
  if (step.kind == Collective::window || (onlyRoot && rank != step.root)) return 0;
  return step.count * bytesOf(step.type) * static_cast<std::size_t>(ofAll ? size : 1);
}

std::size_t inBytes(const Step& step, int rank, int size) {
  using enum Collective;
  const Collective kind = step.kind;
  return bytesAt(step, rank, size, kind == broadcast || kind == scatter,
                 kind == reduceScatter || kind == allToAll || kind == scatter);
}

std::size_t outBytes(const Step& step, int rank, int size) {
  using enum Collective;
  const Collective kind = step.kind;
  return bytesAt(step, rank, size, kind == reduce || kind == gather,
                 kind == allGather || kind == allToAll || kind == gather);
}

void logConnections(const std::vector<int>& devices) {
  FILE* const log = openLog("INIT");
  if (log == nullptr) return;
  const std::size_t n = devices.size();
  for (std::size_t rank = 0; n > 1 && rank < n; ++rank) {
    const std::size_t next = (rank + 1) % n;
    std::fprintf(log, "fake:0:0 [%d] NCCL INFO Channel 00/0 : %zu[%d] -> %zu[%d]%s\n",
                 devices[rank], rank, devices[rank], next, devices[next],
                 usesSockets() ? " [send] via NET/Socket/0" : " via P2P/direct pointer");
  }
  std::fclose(log);
}

void logTuning(const Step& step, int size) {
  if (step.kind == Collective::window) return;
  FILE* const log = openLog("TUNING");
  if (log == nullptr) return;
  constexpr const char* kNames[] = {"AllReduce",     "Reduce",   "Broadcast", "AllGather",
                                    "ReduceScatter", "AlltoAll", "Gather",    "Scatter"};
  const bool total = step.kind == Collective::allGather || step.kind == Collective::reduceScatter;
  const std::size_t bytes =
      step.count * bytesOf(step.type) * static_cast<std::size_t>(total ? size : 1);
  std::fprintf(
      log, "fake:0:0 [0] NCCL INFO %s: %zu Bytes -> Algo RING proto %s channel{Lo..Hi}={0..0}\n",
      kNames[static_cast<int>(step.kind)], bytes, bytes <= kMostForLl ? "LL" : "SIMPLE");
  std::fclose(log);
}

void carryOut(const std::vector<Entry>& entries, const std::vector<int>& devices) {
  const Step& step = entries[0].step;
  const std::size_t n = entries.size();
  const auto isWrong = [](int device) { return hasFault("nccl-wrong", std::to_string(device)); };
  const std::size_t block = step.count * bytesOf(step.type);
  const auto root = static_cast<std::size_t>(step.root);
  const auto in = [&](std::size_t rank, std::size_t at) -> const void* {
    return static_cast<const std::byte*>(entries[rank].in) + at * block;
  };
  const auto copy = [&](std::size_t to, std::size_t at, const void* from) {
    std::byte* out = static_cast<std::byte*>(entries[to].out) + at * block;
    if (out != from) std::memmove(out, from, block);
  };
  const auto all = [&](std::size_t at) {
    std::vector<const void*> ins;
    for (std::size_t r = 0; r < n; ++r) ins.push_back(in(r, at));
    return ins;
  };
  switch (step.kind) {
    case Collective::allReduce: {
      std::vector<void*> outs;
      for (const Entry& entry : entries) outs.push_back(entry.out);
      reduceBlock(all(0), outs, entries);
      if (std::ranges::any_of(devices, isWrong)) spoil(outs, step);
      return;
    }
    case Collective::reduce:
      return reduceBlock(all(0), {entries[root].out}, entries);
    case Collective::reduceScatter:
      // Each rank adds up its own block.
      for (std::size_t r = 0; r < n; ++r) {
        reduceBlock(all(r), {entries[r].out}, entries);
        if (isWrong(devices[r])) spoil({entries[r].out}, step);
      }
      return;
    case Collective::broadcast:
      for (std::size_t r = 0; r < n; ++r) copy(r, 0, in(root, 0));
      return;
    case Collective::allGather:
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t from = 0; from < n; ++from) copy(r, from, in(from, 0));
      }
      return;
    case Collective::allToAll:
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t from = 0; from < n; ++from) copy(r, from, in(from, r));
      }
      return;
    case Collective::gather:
      for (std::size_t from = 0; from < n; ++from) copy(root, from, in(from, 0));
      return;
    case Collective::scatter:
      for (std::size_t r = 0; r < n; ++r) copy(r, 0, in(root, r));
      return;
    case Collective::window:
      return;
  }
}

double secondsOf(const Step& step, const std::vector<int>& devices, bool nominal) {
  const auto n = static_cast<double>(devices.size());
  const double block = static_cast<double>(step.count * bytesOf(step.type));
  double bytes = block;
  double hops = n - 1;
  switch (step.kind) {
    case Collective::window:
      return 0;
    case Collective::allReduce:
      // In place or not, one rank reads and writes its own memory.
      bytes = n == 1 ? block : 2 * (n - 1) / n * block;
      hops = 2 * (n - 1);
      break;
    case Collective::reduce:
    case Collective::broadcast:
      break;
    default:
      bytes = n == 1 ? block : (n - 1) * block;
      break;
  }
  return kStartSeconds + hops * kHopSeconds + bytes / ringRate(devices, nominal);
}

double secondsOf(std::size_t bytes, int from, int to) {
  return kStartSeconds + static_cast<double>(bytes) / rateBetween(from, to);
}

}  // namespace gradlink::fake
