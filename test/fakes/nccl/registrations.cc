#include "nccl/registrations.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "nccl/comm.h"
#include "nccl/driver_link.h"
#include "support/environment.h"

namespace gradlink::fake {
namespace {

struct Registered {
  std::mutex mutex;
  /// By its first byte, how often.
  std::map<const void*, int> live;
  std::vector<std::string> misuses;
};
Registered& registered() {
  static Registered& all = *new Registered;
  return all;
}

std::atomic<std::size_t> localSoFar{0};
std::atomic<std::size_t> windowsSoFar{0};
std::atomic<std::size_t> symmetricSoFar{0};

/// Places in one registration are further apart from those in another than memory is long.
constexpr int kOffsetBits = 40;

}  // namespace

std::size_t registrationCount(RegistrationCount which) {
  switch (which) {
    case RegistrationCount::local:
      return localSoFar;
    case RegistrationCount::windows:
      return windowsSoFar;
    case RegistrationCount::symmetric:
      return symmetricSoFar;
    case RegistrationCount::live:
      break;
  }
  const std::lock_guard lock(registered().mutex);
  std::size_t live = 0;
  for (const auto& [memory, times] : registered().live) live += static_cast<std::size_t>(times);
  return live;
}

void countSymmetric() { ++symmetricSoFar; }

void misused(const std::string& text) {
  const std::lock_guard lock(registered().mutex);
  registered().misuses.push_back(text);
}

std::vector<std::string> misuses() {
  const std::lock_guard lock(registered().mutex);
  return registered().misuses;
}

void freeing(const void* memory) {
  {
    const std::lock_guard lock(registered().mutex);
    if (!registered().live.contains(memory)) return;
  }
  misused("memory was freed while it was registered");
}

void* Comm::addRegistration(const void* memory, std::size_t bytes, bool isWindow) {
  ++(isWindow ? windowsSoFar : localSoFar);
  {
    const std::lock_guard lock(registered().mutex);
    ++registered().live[memory];
  }
  const std::lock_guard lock(mutex_);
  auto made = std::make_unique<Registration>(
      Registration{static_cast<const std::byte*>(memory), bytes, ++registered_, isWindow});
  void* const handle = made.get();
  registrations_.emplace(handle, std::move(made));
  return handle;
}

bool Comm::removeRegistration(void* handle) {
  const void* memory = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = registrations_.find(handle);
    if (found == registrations_.end()) {
      misused("memory was deregistered that is not registered");
      return false;
    }
    memory = found->second->memory;
    registrations_.erase(found);
  }
  forget(memory);
  if (DriverLink::get()->owner(memory) != device) {
    misused("memory was freed before it was deregistered");
  }
  return true;
}

void Comm::forget(const void* memory) {
  const std::lock_guard lock(registered().mutex);
  const auto found = registered().live.find(memory);
  if (found != registered().live.end() && --found->second == 0) registered().live.erase(found);
}

void Comm::forgetAll() {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, one] : registrations_) forget(one->memory);
  registrations_.clear();
}

const Comm::Registration* Comm::registrationOf(const void* memory) const {
  const auto* const at = static_cast<const std::byte*>(memory);
  const std::less_equal<> notBehind;
  for (const auto& [handle, one] : registrations_) {
    if (notBehind(one->memory, at) && notBehind(at + 1, one->memory + one->bytes)) {
      return one.get();
    }
  }
  return nullptr;
}

std::uint64_t Comm::placeOf(const void* memory) const {
  const std::lock_guard lock(mutex_);
  const Registration* const one = registrationOf(memory);
  if (one == nullptr) return 0;
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - one->memory);
  return (one->number << kOffsetBits) + offset;
}

bool Comm::isInWindow(const void* memory) const {
  const std::lock_guard lock(mutex_);
  const Registration* const one = registrationOf(memory);
  return one != nullptr && one->isWindow;
}

void Comm::openInBackground(std::vector<Window> windows) {
  settle();
  state(abi::kInProgress);
  job_ = std::thread([this, windows = std::move(windows)] { state(openWindows(windows)); });
}

abi::Result Comm::openWindows(const std::vector<Window>& windows) {
  {
    std::unique_lock lock(mutex_);
    const bool stuck = hasFault("nccl-windows", "stuck");
    changed_.wait(lock, [&] { return aborted_ || (turn_ == launched_ && !stuck); });
    if (aborted_) return abi::kInternalError;
  }
  if (hasFault("nccl-windows", "fails")) {
    return complain(abi::kSystemError, "Allocation failed. No suitable space found");
  }
  for (const Window& window : windows) {
    Entry entry;
    entry.step.kind = Collective::window;
    entry.step.count = window.bytes;
    double clock = 0;
    if (!port_->collective(entry, clock)) return abi::kInternalError;
    // Without memory that peers can map there are none, and that is no error.
    *window.handle =
        hasFault("nccl-windows", "none")
            ? nullptr
            : static_cast<abi::WindowHandle>(addRegistration(window.memory, window.bytes, true));
  }
  return abi::kSuccess;
}

}  // namespace gradlink::fake
