// Opening communicators.
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "nccl/library.h"
#include "nccl/nccl_rendezvous.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

/// The library reports duplicate GPUs as a general error; here they are known.
Error explained(Error error, std::span<const int> gpus) {
  std::set<int> seen;
  for (const int gpu : gpus) {
    if (seen.insert(gpu).second || error.code != ErrorCode::invalidArgument) continue;
    Error better(error.code,
                 std::string(error.what()) + ". gpu:" + std::to_string(gpu) +
                     " was given to several ranks, and this NCCL takes one rank a GPU: use "
                     "distinct GPUs, or a store of type device, which needs none (NCCL 2.30.3 and "
                     "newer take two with NCCL_MULTI_RANK_GPU_ENABLE=1)");
    return better.stillUsable();
  }
  return error;
}

/// It does not report which GPU another process uses either.
Error sharedGpu(const Error& error) {
  if (error.code != ErrorCode::invalidArgument || error.usable) return error;
  Error better(error.code, std::string(error.what()) +
                               ". A GPU can be one rank: do two processes of a host list the "
                               "same one?");
  return better.withRank(error.rank).withOp(error.op);
}

std::unique_ptr<NcclCommunicator> meet(HeldRanks held, std::span<const UniqueId> ids,
                                       const Options& options) {
  return std::make_unique<Ranks>(std::move(held), ids, options);
}

void checkSize(int rank, int size) {
  if (size < 1) throw misuse("join", "size must be 1 or more, got " + std::to_string(size));
  if (rank < 0 || rank >= size) {
    throw misuse("join",
                 "rank must be 0.." + std::to_string(size - 1) + ", got " + std::to_string(rank));
  }
}

}  // namespace

std::unique_ptr<NcclCommunicator> openLocal(std::span<const int> gpus, const Options& options) {
  if (gpus.empty()) throw misuse("openLocal", "expected at least one GPU, got none");
  Library::get();
  HeldRanks held;
  held.size = static_cast<int>(gpus.size());
  held.ranks.resize(gpus.size());
  std::iota(held.ranks.begin(), held.ranks.end(), 0);
  for (const int gpu : gpus) held.devices.push_back(&cuda::Device::get(gpu));
  try {
    return meet(std::move(held), std::array<UniqueId, 1>{makeUniqueId()}, options);
  } catch (const Error& error) {
    throw explained(error, gpus);
  }
}

std::unique_ptr<NcclCommunicator> join(const UniqueId& id, int rank, int size, int gpu,
                                       const Options& options) {
  checkSize(rank, size);
  Library::get();
  return meet({{rank}, {&cuda::Device::get(gpu)}, size, nullptr, {}}, {&id, 1}, options);
}

std::unique_ptr<NcclCommunicator> join(std::unique_ptr<Communicator> control, int gpu,
                                       const Options& options) {
  if (!control || control->heldRanks().size() != 1) {
    throw misuse("join", "the control communicator must hold one rank");
  }
  HeldRanks held{{control->heldRanks()[0]}, {}, control->size(), nullptr, {}};
  std::vector<UniqueId> ids;
  try {
    held.devices.push_back(&cuda::Device::get(gpu));
    Library::get();
    ids = shareIdsOver(*control, control->size(), options, options.timeoutMs);
  } catch (const Error& error) {
    control->abort(error.what());
    throw;
  }
  held.control = std::move(control);
  return meet(std::move(held), ids, options);
}

std::unique_ptr<NcclCommunicator> join(std::unique_ptr<Communicator> control,
                                       std::span<const int> gpus, const Options& options) {
  if (!control || control->heldRanks().size() != 1) {
    throw misuse("join", "the control communicator must hold one rank");
  }
  if (gpus.empty()) throw misuse("join", "expected at least one GPU, got none");
  std::vector<cuda::Device*> devices;
  Processes processes = introduce(*control, gpus, devices, options.timeoutMs);
  try {
    return joinPart(std::move(control), std::move(processes), std::move(devices), options);
  } catch (const Error& error) {
    throw sharedGpu(explained(error, gpus));
  }
}

std::unique_ptr<NcclCommunicator> joinPart(std::unique_ptr<Communicator> control,
                                           Processes processes, std::vector<cuda::Device*> devices,
                                           const Options& options) {
  HeldRanks held;
  held.ranks = processes.ranksOf(control->heldRanks()[0]);
  held.devices = std::move(devices);
  held.size = processes.ranks();
  if (processes.most() > 1) {
    control = std::make_unique<ProcessControl>(std::move(control), processes);
    held.processes = std::move(processes);
  }
  std::vector<UniqueId> ids;
  try {
    ids = shareIdsOver(*control, held.size, options, options.timeoutMs);
  } catch (const Error& error) {
    control->abort(error.what());  // the others wait for this process
    throw;
  }
  held.control = std::move(control);
  return meet(std::move(held), ids, options);
}

}  // namespace gradlink::nccl
