// GPUs by their ordinals, each with its primary context: the one that NCCL and frameworks share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/driver.h"

namespace gradlink::cuda {

class Device {
 public:
  /// Asks the driver what it is, and makes nothing on it. Throws Error(backendUnavailable) without
  /// a driver, Error(invalidArgument) for an ordinal that is not there, naming how many there are.
  static Device& get(int ordinal);
  /// Throws where there is no driver.
  static int count();
  /// The device whose context is current on this thread, else one that has a context, else gpu:0:
  /// for what belongs to no device, so that no further context is made for it.
  static Device& any();

  int ordinal() const { return ordinal_; }
  DeviceHandle handle() const { return handle_; }
  /// The primary context, retained at the first call: it takes some 500 MiB of the GPU and part of
  /// a second, so that it is for what is to run there. It stays for the life of the process, as
  /// with every process that uses NCCL: the CUDA runtime in there keeps it to its end. Modules,
  /// page-locked memory and what peers may reach go with it. Throws Error(backendUnavailable) where
  /// this process may not use the GPU, else what the driver says.
  ContextHandle context() const;
  /// "gpu:0 (NVIDIA H200)", for messages.
  const std::string& label() const { return label_; }
  int attribute(int id) const;
  int multiprocessors() const { return multiprocessors_; }
  /// That one multiprocessor holds at once: 1024 to 2048.
  int threadsOfMultiprocessor() const { return threadsOfMultiprocessor_; }
  /// 9 for compute capability 9.0.
  int capabilityMajor() const { return capabilityMajor_; }
  int capabilityMinor() const { return capabilityMinor_; }

  /// Makes the context current on this thread: before anything that allocates, launches or records.
  void makeCurrent() const;
  /// Whether kernels and copies of this device reach `peer` directly: true for itself.
  bool canReach(const Device& peer) const;
  /// Enables that; once enabled it stays. False where it cannot be, or where the hardware has no
  /// room for a further peer. Thread-safe; makes the context current.
  bool enablePeer(const Device& peer);
  /// For measuring what it is worth without; true when it was enabled. Nothing that uses it may
  /// run.
  bool disablePeer(const Device& peer);

 private:
  explicit Device(int ordinal);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal_;
  DeviceHandle handle_ = 0;
  mutable std::mutex contextMutex_;
  mutable std::atomic<ContextHandle> context_ = nullptr;
  int multiprocessors_ = 0;
  int threadsOfMultiprocessor_ = 0;
  int capabilityMajor_ = 0;
  int capabilityMinor_ = 0;
  std::string label_;
  std::mutex peersMutex_;
  /// By ordinal: whether this context reaches that one.
  std::vector<bool> peers_;
};

/// While one lives, what runs may reach from GPU to GPU, and that is not taken away: who holds
/// communicators and stores.
class PeersInUse {
 public:
  PeersInUse() { ++users(); }
  ~PeersInUse() { --users(); }
  PeersInUse(const PeersInUse&) = delete;
  PeersInUse& operator=(const PeersInUse&) = delete;
  static bool any() { return users() != 0; }

 private:
  static std::atomic<int>& users();
};

/// Leaves this thread the current context that it had: of calls on threads that other libraries
/// use, which go on where they were.
class SameContext {
 public:
  SameContext() { Driver::get().getCurrent(&before_); }
  ~SameContext() { Driver::get().setCurrent(before_); }
  SameContext(const SameContext&) = delete;
  SameContext& operator=(const SameContext&) = delete;

 private:
  ContextHandle before_ = nullptr;
};

}  // namespace gradlink::cuda
