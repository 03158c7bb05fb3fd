#include "cuda/context.h"

#include <fcntl.h>
#include <sys/file.h>

#include "cuda/memory.h"
#include "support/environment.h"
#include "support/leaks.h"
#include "support/machine.h"

namespace gradlink::fake {
namespace {

thread_local Context* currentOfThread = nullptr;
thread_local Execution* hostFunction = nullptr;
std::atomic<int> waiting{0};

}  // namespace

Status Context::retain() {
  const std::lock_guard lock(mutex_);
  if (retained_) return kOk;
  const std::string gpu = std::to_string(device_);
  if (hasFault("prohibited", gpu)) return kDeviceUnavailable;
  for (const std::string& value : faultValues("retain")) {
    const std::size_t at = value.find('@');
    if (at == value.npos) badSetting("retain", value);
    if (value.substr(at + 1) == gpu) {
      return static_cast<Status>(parseNumber(value.substr(0, at), "retain"));
    }
  }
  if (const auto file = fault("exclusive")) {
    // The process's to its end, and so is the lock.
    const int lockFile = ::open((*file + gpu).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (lockFile < 0) badSetting("exclusive", *file);
    if (::flock(lockFile, LOCK_EX | LOCK_NB) != 0) {
      ::close(lockFile);
      return kDeviceUnavailable;
    }
  }
  Memory::get().takeForContext(device_);
  retained_ = true;
  report("GRADLINK_FAKE_CONTEXTS", "cuda", {"gpu:" + gpu});
  return kOk;
}

void Context::fail(Status status) {
  Status none = kOk;
  status_.compare_exchange_strong(none, status);
}

std::shared_ptr<Stream> Context::startStream() {
  std::shared_ptr<Stream> stream = Stream::start(*this);
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const std::weak_ptr<Stream>& old) { return old.expired(); });
  streams_.push_back(stream);
  return stream;
}

std::shared_ptr<Stream> Context::nullStream() {
  {
    const std::lock_guard lock(mutex_);
    if (null_) return null_;
  }
  std::shared_ptr<Stream> started = startStream();
  const std::lock_guard lock(mutex_);
  // Another thread may have been faster.
  if (null_) {
    started->close();
  } else {
    null_ = std::move(started);
  }
  return null_;
}

HardwareQueue* Context::nextQueue() {
  static const auto most = static_cast<std::size_t>(faultNumber("queues").value_or(0));
  if (most == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  if (queues_.size() < most) queues_.push_back(std::make_unique<HardwareQueue>());
  return queues_[started_++ % most].get();
}

void Context::synchronize() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Stream>& stream : streams_) {
      if (std::shared_ptr<Stream> live = stream.lock()) streams.push_back(std::move(live));
    }
  }
  // A stream that was destroyed and has finished sets no more marks.
  for (const std::shared_ptr<Stream>& stream : streams) {
    if (!stream->idle()) hostReached(stream->end()->wait());
  }
}

World& World::get() {
  static World& world = *new World;
  return world;
}

World::World() {
  for (int i = 0; i < Machine::get().count(); ++i) {
    contexts.push_back(std::make_unique<Context>(i));
  }
}

Status enter() {
  if (!World::get().initialized) return kNotInitialized;
  return hostFunction ? kNotPermitted : kOk;
}

Status enter(Context*& current) {
  if (const Status status = enter()) return status;
  if (!currentOfThread) return kInvalidContext;
  current = currentOfThread;
  return current->status();
}

Context* currentContext() { return currentOfThread; }
void setCurrentContext(Context* context) { currentOfThread = context; }

Context* contextOf(ContextHandle handle) {
  for (const auto& context : World::get().contexts) {
    if (handleOf(context.get()) == handle) return context.get();
  }
  return nullptr;
}

void waitForUsers(int place) {
  ++waiting;
  std::vector<std::unique_lock<std::shared_mutex>> locks;
  std::vector<Context*> users;
  for (const auto& each : World::get().contexts) {
    if (place >= 0 && !each->maps(place)) continue;
    users.push_back(each.get());
    locks.emplace_back(each->launches());
  }
  for (Context* user : users) user->synchronize();
  --waiting;
}

int waitingForUsers() { return waiting; }

HostFunctionScope::HostFunctionScope(Execution& execution) { hostFunction = &execution; }
HostFunctionScope::~HostFunctionScope() { hostFunction = nullptr; }
Execution* HostFunctionScope::current() { return hostFunction; }

}  // namespace gradlink::fake
