// The library's functions around communicators and memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "nccl/driver_link.h"
#include "nccl/export.h"
#include "nccl/group.h"
#include "nccl/registrations.h"
#include "support/environment.h"

namespace gradlink::fake {
namespace {

using abi::CommHandle;

constexpr char kIdMark[] = "gradlink";
constexpr std::size_t kWindowAlignment = 4096;

/// Memory by the address that was given out: where it really begins.
struct Allocations {
  std::mutex mutex;
  std::map<void*, cuda::Address> bases;
};
Allocations& allocations() {
  static Allocations& all = *new Allocations;
  return all;
}

FAKE_NCCL(20300, ncclGetVersion, (int* version)) {
  *version = libraryVersion();
  return abi::kSuccess;
}

FAKE_NCCL(20300, ncclGetUniqueId, (abi::UniqueId * id)) {
  const std::string hub = openHub();
  *id = {};
  std::memcpy(id->bytes, kIdMark, sizeof(kIdMark));
  std::memcpy(id->bytes + sizeof(kIdMark), hub.data(), hub.size());
  return abi::kSuccess;
}

/// To tests.
std::atomic<int> idsOfLastInit{0};

/// All ids are looked at; the ranks meet at the first.
abi::Result initRank(CommHandle* handle, int size, const abi::UniqueId* ids, int idCount, int rank,
                     const abi::Config* config) {
  if (handle == nullptr) return abi::kInvalidArgument;
  *handle = nullptr;
  if (size < 1 || rank < 0 || rank >= size) {
    return complain(abi::kInvalidArgument, "Invalid rank requested: " + std::to_string(rank));
  }
  if (idCount < 1 || idCount > size) {
    return complain(abi::kInvalidArgument, "improper number of ids: " + std::to_string(idCount));
  }
  for (int i = 0; i < idCount; ++i) {
    if (std::memcmp(ids[i].bytes, kIdMark, sizeof(kIdMark)) != 0 || ids[i].bytes[127] != '\0') {
      return complain(abi::kInvalidArgument, "not an id of this library");
    }
  }
  if (fault("nccl-init")) {
    return complain(abi::kSystemError,
                    "Error while creating shared memory segment /dev/shm/nccl-XXXXXX");
  }
  bool blocking = true;
  if (config != nullptr) {
    if (config->magic != abi::kConfigMagic || config->size < offsetof(abi::Config, netName)) {
      return complain(abi::kInvalidArgument, "ncclConfig_t argument not initialized");
    }
    if (config->blocking != 0 && config->blocking != 1 && config->blocking != INT_MIN) {
      return complain(abi::kInvalidArgument, "Invalid config blocking attribute value");
    }
    if (config->minCtas > config->maxCtas) {
      return complain(abi::kInvalidArgument, "Invalid config min/max channels");
    }
    blocking = config->blocking != 0;
  }
  const DriverLink* driver = DriverLink::get();
  const int device = driver != nullptr ? driver->currentDevice() : -1;
  if (device < 0) return complain(abi::kUnhandledCudaError, "no device is current");
  auto comm = std::make_shared<Comm>(ids[0].bytes + sizeof(kIdMark), rank, size, device, blocking);
  *handle = Comm::add(comm);
  return addJoin(std::move(comm));
}

FAKE_NCCL(21403, ncclCommInitRankConfig,
          (CommHandle * handle, int size, abi::UniqueId id, int rank, abi::Config* config)) {
  return initRank(handle, size, &id, 1, rank, config);
}

FAKE_NCCL(22304, ncclCommInitRankScalable,
          (CommHandle * handle, int size, int rank, int idCount, abi::UniqueId* ids,
           abi::Config* config)) {
  idsOfLastInit.store(idCount);
  return initRank(handle, size, ids, idCount, rank, config);
}

FAKE_NCCL(21403, ncclCommFinalize, (CommHandle handle)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  return comm ? comm->finalize() : abi::kInvalidArgument;
}

FAKE_NCCL(20300, ncclCommDestroy, (CommHandle handle)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  if (!comm) return complain(abi::kInvalidArgument, "comm is not a communicator");
  settleLaunches();
  comm->settle();
  Comm::remove(handle);
  return abi::kSuccess;
}

FAKE_NCCL(20402, ncclCommAbort, (CommHandle handle)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  if (!comm) return complain(abi::kInvalidArgument, "comm is not a communicator");
  // Before this version members of one group may not end beside each other: two threads would join
  // one. An abort takes a moment, so that another that is under way is met.
  static std::atomic<int> underWay{0};
  constexpr int kTogetherFrom = 22703;
  if (underWay.fetch_add(1) > 0 && libraryVersion() < kTogetherFrom) {
    std::fputs("fake NCCL: two threads in ncclCommAbort at once\n", stderr);
    std::abort();
  }
  if (libraryVersion() < kTogetherFrom) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  comm->abort();
  // A launch may stand still until then.
  settleLaunches();
  underWay.fetch_sub(1);
  Comm::remove(handle);
  return abi::kSuccess;
}

FAKE_NCCL(20402, ncclCommGetAsyncError, (CommHandle handle, abi::Result* result)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  if (!comm || result == nullptr) return abi::kInvalidArgument;
  *result = comm->state();
  return abi::kSuccess;
}

FAKE_NCCL(21901, ncclMemAlloc, (void** memory, std::size_t bytes)) {
  const DriverLink* driver = DriverLink::get();
  if (driver == nullptr) return abi::kUnhandledCudaError;
  cuda::Address base = 0;
  if (driver->memAlloc(&base, bytes + kWindowAlignment) != cuda::kSuccess) {
    return complain(abi::kUnhandledCudaError, "Cuda failure 2 'out of memory'");
  }
  const cuda::Address aligned = (base + kWindowAlignment - 1) / kWindowAlignment * kWindowAlignment;
  *memory = reinterpret_cast<void*>(aligned);
  const std::lock_guard lock(allocations().mutex);
  allocations().bases.emplace(*memory, base);
  return abi::kSuccess;
}

FAKE_NCCL(21901, ncclMemFree, (void* memory)) {
  const std::lock_guard lock(allocations().mutex);
  const auto found = allocations().bases.find(memory);
  if (found == allocations().bases.end()) return abi::kInvalidArgument;
  freeing(memory);
  const cuda::Status status = DriverLink::get()->memFree(found->second);
  allocations().bases.erase(found);
  return status == cuda::kSuccess ? abi::kSuccess : abi::kUnhandledCudaError;
}

FAKE_NCCL(21901, ncclCommRegister,
          (CommHandle handle, void* memory, std::size_t bytes, void** registration)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  if (!comm || memory == nullptr || bytes == 0) return abi::kInvalidArgument;
  if (DriverLink::get()->owner(memory) != comm->device) {
    return complain(abi::kInvalidArgument, "not memory of the communicator's GPU");
  }
  *registration = comm->addRegistration(memory, bytes, false);
  return abi::kSuccess;
}
FAKE_NCCL(21901, ncclCommDeregister, (CommHandle handle, void* registration)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  return comm && comm->removeRegistration(registration) ? abi::kSuccess : abi::kInvalidUsage;
}

FAKE_NCCL(22703, ncclCommWindowRegister,
          (CommHandle handle, void* memory, std::size_t bytes, abi::WindowHandle* window,
           int flags)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  if (!comm || bytes == 0 || flags < 0) return abi::kInvalidArgument;
  if (DriverLink::get()->owner(memory) != comm->device) {
    return complain(abi::kInvalidArgument, "not memory of the communicator's GPU");
  }
  *window = nullptr;
  const std::lock_guard lock(allocations().mutex);
  if (!allocations().bases.contains(memory)) {
    return complain(abi::kInvalidArgument, "window memory must come from ncclMemAlloc");
  }
  return addWindow(handle, {memory, bytes, window});
}
FAKE_NCCL(22703, ncclCommWindowDeregister, (CommHandle handle, abi::WindowHandle window)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  return comm && comm->removeRegistration(window) ? abi::kSuccess : abi::kInvalidUsage;
}

}  // namespace
}  // namespace gradlink::fake

extern "C" {

/// Of this process, to tests.
__attribute__((visibility("default"))) std::size_t gradlinkFakeNcclHandles() {
  return gradlink::fake::Comm::left();
}

/// Groups, or, from 0 on, collectives of that kind in the order of the enumeration.
__attribute__((visibility("default"))) std::size_t gradlinkFakeNcclCalls(int kind) {
  using gradlink::fake::Collective;
  return kind < 0 ? gradlink::fake::groupsSoFar()
                  : gradlink::fake::collectivesSoFar(static_cast<Collective>(kind));
}

/// In the order of RegistrationCount.
__attribute__((visibility("default"))) std::size_t gradlinkFakeNcclRegistered(int which) {
  return gradlink::fake::registrationCount(static_cast<gradlink::fake::RegistrationCount>(which));
}

__attribute__((visibility("default"))) std::size_t gradlinkFakeNcclIds() {
  return gradlink::fake::idsOfLastInit.load();
}

__attribute__((visibility("default"))) const char* ncclGetErrorString(
    gradlink::nccl::abi::Result result) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                    "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                    "internal error - please report this issue to the NCCL "
                                    "developers",
                                    "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                    "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return result >= 0 && result < 8 ? kTexts[result] : "unknown result code";
}

__attribute__((visibility("default"))) const char* ncclGetLastError(
    gradlink::nccl::abi::CommHandle) {
  return gradlink::fake::lastErrorText();
}
}
