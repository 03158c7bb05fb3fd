#include "nccl/nccl_rendezvous.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/agreement.h"
#include "core/error.h"
#include "nccl/library.h"

namespace gradlink::nccl {
namespace {

/// Sent by each process before the ranks meet.
struct Introduction {
  /// Ranks that it holds; 0 if it cannot take part.
  std::int32_t count = 0;
  /// Why not.
  std::array<char, 252> problem{};
};

/// More GPUs than any host has: limits the memory that a peer can make us allocate.
constexpr std::int32_t kMostOfProcess = 1024;

/// The first version that may take several ranks on one GPU: see explained().
constexpr int kSeveralRanksOfGpu = 23003;

/// This process's devices; throws if it cannot take part.
std::vector<cuda::Device*> devicesOf(std::span<const int> gpus) {
  const Library& library = Library::get();
  std::vector<cuda::Device*> devices;
  for (const int gpu : gpus) {
    cuda::Device& device = cuda::Device::get(gpu);
    if (library.info.version < kSeveralRanksOfGpu && std::ranges::count(gpus, gpu) > 1) {
      throw Error(ErrorCode::invalidArgument, "join: " + device.label() +
                                                  " was listed twice, and this NCCL takes one "
                                                  "rank a GPU: list distinct GPUs")
          .stillUsable();
    }
    devices.push_back(&device);
  }
  return devices;
}

}  // namespace

void gatherRows(Communicator& control, const std::optional<Processes>& processes, const void* own,
                void* all, std::size_t bytes, const CallOptions& options) {
  const Exchange exchange = exchangeOver(control, options);
  if (!processes || processes->most() == 1) return exchange(own, all, bytes);
  // Every process sends as many rows as the largest one.
  const std::size_t block = static_cast<std::size_t>(processes->most()) * bytes;
  std::vector<char> padded(block);
  std::vector<char> gathered(static_cast<std::size_t>(processes->size()) * block);
  const int process = control.heldRanks()[0];
  std::memcpy(padded.data(), own, static_cast<std::size_t>(processes->count(process)) * bytes);
  exchange(padded.data(), gathered.data(), block);
  auto* const rows = static_cast<char*>(all);
  for (int p = 0; p < processes->size(); ++p) {
    const char* from = gathered.data() + static_cast<std::size_t>(p) * block;
    for (const int rank : processes->ranksOf(p)) {
      std::memcpy(rows + static_cast<std::size_t>(rank) * bytes, from, bytes);
      from += bytes;
    }
  }
}

std::vector<UniqueId> shareIdsOver(Communicator& control, int ranks, const Options& options,
                                   double timeoutMs) {
  const int processes = control.size();
  const int process = control.heldRanks()[0];
  const bool several = Library::get().commInitRankScalable != nullptr;
  const int wanted = several ? (ranks + options.ranksOfId - 1) / options.ranksOfId : 1;
  const int count = std::min(wanted, processes);
  UniqueId own{};
  if (count == 1) {
    if (process == 0) own = makeUniqueId();
    const void* const in[] = {own.data()};
    void* const out[] = {own.data()};
    control.broadcast({in, out}, own.size(), DType::uint8, 0, {.timeoutMs = timeoutMs});
    return {own};
  }
  // Spread over the processes, and so over the hosts.
  const auto makerOf = [&](int id) {
    return static_cast<int>(static_cast<std::int64_t>(id) * processes / count);
  };
  for (int id = 0; id < count; ++id) {
    if (makerOf(id) == process) own = makeUniqueId();
  }
  const auto all = exchangeRecords(exchangeOver(control, {.timeoutMs = timeoutMs}), processes, own);
  std::vector<UniqueId> ids;
  ids.reserve(static_cast<std::size_t>(count));
  for (int id = 0; id < count; ++id) ids.push_back(all[static_cast<std::size_t>(makerOf(id))]);
  return ids;
}

Processes introduce(Communicator& control, std::span<const int> gpus,
                    std::vector<cuda::Device*>& devices, double timeoutMs) {
  Introduction own;
  std::optional<Error> problem;
  try {
    devices = devicesOf(gpus);
    own.count = static_cast<std::int32_t>(gpus.size());
  } catch (const Error& error) {
    problem = error;
    std::string_view(error.what()).copy(own.problem.data(), own.problem.size() - 1);
  }
  auto all = exchangeRecords(exchangeOver(control, {.timeoutMs = timeoutMs}), control.size(), own);
  if (problem) throw *problem;
  std::vector<int> counts;
  for (Introduction& one : all) {
    if (one.count > 0 && one.count <= kMostOfProcess) {
      counts.push_back(one.count);
      continue;
    }
    one.problem.back() = 0;
    const auto process = static_cast<int>(counts.size());
    const std::string why = one.count == 0
                                ? one.problem.data()
                                : "it says that it holds " + std::to_string(one.count) +
                                      " GPUs, of at most " + std::to_string(kMostOfProcess);
    throw Error(ErrorCode::aborted,
                "join: process " + std::to_string(process) + " cannot take part: " + why)
        .withRank(process)
        .withOp("join");
  }
  return Processes::inOrder(counts);
}

}  // namespace gradlink::nccl
