// GPUs by ordinal, each with its primary context, which NCCL and frameworks share.
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
  /// Queries the driver and creates nothing on the device. Throws Error(backendUnavailable) without
  /// a driver, Error(invalidArgument) for an unknown ordinal.
  static Device& get(int ordinal);
  /// Throws without a driver.
  static int count();
  /// A device for work that belongs to none: the thread's current one, else one with a context,
  /// else gpu:0. Avoids creating another context.
  static Device& any();

  int ordinal() const { return ordinal_; }
  DeviceHandle handle() const { return handle_; }
  /// The primary context, retained at the first call. It takes some 500 MiB of the GPU, so it is
  /// created only for work on that GPU. It stays for the life of the process, as in every process
  /// that uses NCCL, whose CUDA runtime keeps it. Throws Error(backendUnavailable) if this process
  /// may not use the GPU.
  ContextHandle context() const;
  /// "gpu:0 (NVIDIA H200)", for messages.
  const std::string& label() const { return label_; }
  int attribute(int id) const;
  int multiprocessors() const { return multiprocessors_; }
  /// Resident threads of one multiprocessor: 1024 to 2048.
  int threadsOfMultiprocessor() const { return threadsOfMultiprocessor_; }
  int capabilityMajor() const { return capabilityMajor_; }
  int capabilityMinor() const { return capabilityMinor_; }
  /// "9.0".
  std::string capability() const {
    return std::to_string(capabilityMajor_) + "." + std::to_string(capabilityMinor_);
  }

  /// Call before anything that allocates, launches or records.
  void makeCurrent() const;
  /// Whether this device accesses `peer`'s memory directly; true for itself.
  bool canReach(const Device& peer) const;
  /// Whether that has been enabled.
  bool reachesAlready(const Device& peer);
  /// Enables access for good. False if impossible; `full`: as the hardware supports no further
  /// peer. Thread-safe.
  bool enablePeer(const Device& peer, bool* full = nullptr);
  /// For measurements without it; returns whether it was enabled. Nothing that uses it may run.
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
  /// By ordinal: whether this context has access.
  std::vector<bool> peers_;
};

/// While one lives, peer access may be in use and stays enabled. Held by communicators and stores.
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

/// Restores the thread's current context, for calls on threads of other libraries.
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
