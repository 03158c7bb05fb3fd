#include "cuda/device.h"

#include <memory>

#include "core/error.h"
#include "cuda/abi_numbers.h"
#include "cuda/shared_library.h"

namespace gradlink::cuda {
namespace {

constexpr Status kPeerAccessUnsupported = 217;

/// Devices by ordinal. Never destroyed: contexts last as long as the process.
struct Devices {
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> byOrdinal;
};

Devices& devices() {
  static Devices& all = *new Devices;
  return all;
}

/// Why this process gets no context on the GPU, with the remedy.
Error contextRefused(const std::string& label, Status status) {
  const std::string doing = "cannot make a context on " + label + ": " + statusText(status);
  switch (status) {
    case kDeviceUnavailable:
      return {ErrorCode::backendUnavailable,
              doing +
                  ": its compute mode allows no process, or one, which already uses it: "
                  "nvidia-smi -q -d COMPUTE,PIDS shows both; nvidia-smi -c DEFAULT shares it"};
    case kInvalidDevice:
      return {ErrorCode::backendUnavailable,
              doing + ": nvidia-smi and the kernel log (dmesg) show its state"};
    case kUncorrectable:
      return {ErrorCode::system,
              doing + ": its memory has an error that only a reset ends: nvidia-smi -q -d ECC"};
    case kOutOfMemory:
      return Error(ErrorCode::outOfMemory,
                   doing + ": a context takes some 500 MiB; nvidia-smi shows who uses the memory")
          .stillUsable();
    default:
      return {ErrorCode::system, doing};
  }
}

}  // namespace

int Device::count() {
  int count = 0;
  check(Driver::get().deviceCount(&count), "cannot count the GPUs");
  return count;
}

Device& Device::get(int ordinal) {
  const int count = Device::count();
  if (ordinal < 0 || ordinal >= count) {
    throw Error(ErrorCode::invalidArgument,
                "there is no gpu:" + std::to_string(ordinal) + ": this process sees " +
                    (count == 1 ? "one GPU, gpu:0"
                                : std::to_string(count) +
                                      " GPUs, gpu:0 to gpu:" + std::to_string(count - 1)) +
                    " (" + variableText("CUDA_VISIBLE_DEVICES") + ")");
  }
  Devices& all = devices();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.byOrdinal.empty()) all.byOrdinal.resize(static_cast<std::size_t>(count));
  std::unique_ptr<Device>& device = all.byOrdinal[static_cast<std::size_t>(ordinal)];
  if (!device) device.reset(new Device(ordinal));
  return *device;
}

Device& Device::any() {
  ContextHandle current = nullptr;
  check(Driver::get().getCurrent(&current), "cannot read this thread's GPU");
  Device* some = nullptr;
  {
    Devices& all = devices();
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (const std::unique_ptr<Device>& device : all.byOrdinal) {
      const ContextHandle context = device ? device->context_.load() : nullptr;
      if (context == nullptr) continue;
      if (context == current) return *device;
      if (some == nullptr) some = device.get();
    }
  }
  return some != nullptr ? *some : get(0);
}

Device::Device(int ordinal) : ordinal_(ordinal) {
  const Driver& driver = Driver::get();
  const std::string gpu = "gpu:" + std::to_string(ordinal);
  check(driver.deviceGet(&handle_, ordinal), "cannot open " + gpu);
  char name[256] = {};
  check(driver.deviceName(name, static_cast<int>(sizeof(name)) - 1, handle_),
        "cannot read the name of " + gpu);
  label_ = gpu + " (" + name + ")";
  multiprocessors_ = attribute(kMultiprocessorCount);
  threadsOfMultiprocessor_ = attribute(kThreadsOfMultiprocessor);
  capabilityMajor_ = attribute(kCapabilityMajor);
  capabilityMinor_ = attribute(kCapabilityMinor);
  peers_.resize(static_cast<std::size_t>(count()));
  peers_[static_cast<std::size_t>(ordinal)] = true;
}

ContextHandle Device::context() const {
  if (const ContextHandle made = context_.load()) return made;
  const std::lock_guard<std::mutex> lock(contextMutex_);
  if (context_.load() == nullptr) {
    ContextHandle made = nullptr;
    const Status status = Driver::get().primaryContextRetain(&made, handle_);
    if (status != kSuccess) throw contextRefused(label_, status);
    context_ = made;
  }
  return context_;
}

int Device::attribute(int id) const {
  int value = 0;
  check(Driver::get().deviceAttribute(&value, id, handle_),
        "cannot read attribute " + std::to_string(id) + " of " + label_);
  return value;
}

void Device::makeCurrent() const {
  const Status status = Driver::get().setCurrent(context());
  if (status != kSuccess) check(status, "cannot use " + label_ + " on this thread");
}

bool Device::canReach(const Device& peer) const {
  if (&peer == this) return true;
  int can = 0;
  check(Driver::get().canAccessPeer(&can, handle_, peer.handle_),
        "cannot read whether " + label_ + " can access " + peer.label_);
  return can != 0;
}

bool Device::enablePeer(const Device& peer, bool* full) {
  const std::lock_guard<std::mutex> lock(peersMutex_);
  const auto slot = static_cast<std::size_t>(peer.ordinal_);
  if (full != nullptr) *full = false;
  if (peers_[slot]) return true;
  if (!canReach(peer)) return false;
  const SameContext same;
  makeCurrent();
  const Status status = Driver::get().enablePeerAccess(peer.context(), 0);
  if (full != nullptr) *full = status == kTooManyPeers;
  if (status == kTooManyPeers || status == kPeerAccessUnsupported) return false;
  // Another library of the process may have enabled it: the context is shared.
  if (status != kPeerAccessAlreadyEnabled) {
    check(status, "cannot let " + label_ + " reach " + peer.label_);
  }
  peers_[slot] = true;
  return true;
}

bool Device::reachesAlready(const Device& peer) {
  const std::lock_guard<std::mutex> lock(peersMutex_);
  return peers_[static_cast<std::size_t>(peer.ordinal_)];
}

bool Device::disablePeer(const Device& peer) {
  if (&peer == this) return false;
  const std::lock_guard<std::mutex> lock(peersMutex_);
  makeCurrent();
  const Status status = Driver::get().disablePeerAccess(peer.context());
  peers_[static_cast<std::size_t>(peer.ordinal_)] = false;
  if (status == kPeerAccessNotEnabled) return false;
  check(status, "cannot keep " + label_ + " from reaching " + peer.label_);
  return true;
}

std::atomic<int>& PeersInUse::users() {
  static std::atomic<int> users = 0;
  return users;
}

}  // namespace gradlink::cuda
