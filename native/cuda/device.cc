#include "cuda/device.h"

#include <atomic>
#include <memory>

#include "core/error.h"
#include "cuda/abi_numbers.h"
#include "cuda/shared_library.h"

namespace gradlink::cuda {
namespace {

constexpr Status kPeerAccessUnsupported = 217;

/// The devices that were asked for, by ordinal. Never destroyed: contexts last as long as the
/// process.
struct Devices {
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> byOrdinal;
  std::atomic<Device*> first = nullptr;
};

Devices& devices() {
  static Devices& all = *new Devices;
  return all;
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
  if (!device) {
    device.reset(new Device(ordinal));
    Device* none = nullptr;
    all.first.compare_exchange_strong(none, device.get());
  }
  return *device;
}

Device& Device::any() {
  ContextHandle current = nullptr;
  check(Driver::get().getCurrent(&current), "cannot ask for this thread's GPU");
  Devices& all = devices();
  if (current != nullptr) {
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (const std::unique_ptr<Device>& device : all.byOrdinal) {
      if (device && device->context_ == current) return *device;
    }
  }
  Device* const first = all.first.load();
  return first != nullptr ? *first : get(0);
}

Device::Device(int ordinal) : ordinal_(ordinal) {
  const Driver& driver = Driver::get();
  const std::string gpu = "gpu:" + std::to_string(ordinal);
  check(driver.deviceGet(&handle_, ordinal), "cannot open " + gpu);
  char name[256] = {};
  check(driver.deviceName(name, static_cast<int>(sizeof(name)) - 1, handle_),
        "cannot ask for the name of " + gpu);
  label_ = gpu + " (" + name + ")";
  multiprocessors_ = attribute(kMultiprocessorCount);
  threadsOfMultiprocessor_ = attribute(kThreadsOfMultiprocessor);
  capabilityMajor_ = attribute(kCapabilityMajor);
  capabilityMinor_ = attribute(kCapabilityMinor);
  peers_.resize(static_cast<std::size_t>(count()));
  peers_[static_cast<std::size_t>(ordinal)] = true;
  check(driver.primaryContextRetain(&context_, handle_), "cannot make a context on " + label_);
}

int Device::attribute(int id) const {
  int value = 0;
  check(Driver::get().deviceAttribute(&value, id, handle_),
        "cannot read attribute " + std::to_string(id) + " of " + label_);
  return value;
}

void Device::makeCurrent() const {
  const Status status = Driver::get().setCurrent(context_);
  if (status != kSuccess) check(status, "cannot use " + label_ + " on this thread");
}

bool Device::canReach(const Device& peer) const {
  if (&peer == this) return true;
  int can = 0;
  check(Driver::get().canAccessPeer(&can, handle_, peer.handle_),
        "cannot ask whether " + label_ + " reaches " + peer.label_);
  return can != 0;
}

bool Device::enablePeer(const Device& peer) {
  const std::lock_guard<std::mutex> lock(peersMutex_);
  const auto slot = static_cast<std::size_t>(peer.ordinal_);
  if (peers_[slot]) return true;
  if (!canReach(peer)) return false;
  makeCurrent();
  const Status status = Driver::get().enablePeerAccess(peer.context_, 0);
  if (status == kTooManyPeers || status == kPeerAccessUnsupported) return false;
  // Another library of the process may have enabled it: the context is shared.
  if (status != kPeerAccessAlreadyEnabled) {
    check(status, "cannot let " + label_ + " reach " + peer.label_);
  }
  peers_[slot] = true;
  return true;
}

bool Device::disablePeer(const Device& peer) {
  if (&peer == this) return false;
  const std::lock_guard<std::mutex> lock(peersMutex_);
  makeCurrent();
  const Status status = Driver::get().disablePeerAccess(peer.context_);
  peers_[static_cast<std::size_t>(peer.ordinal_)] = false;
  if (status == kPeerAccessNotEnabled) return false;
  check(status, "cannot keep " + label_ + " from reaching " + peer.label_);
  return true;
}

}  // namespace gradlink::cuda
