#include "nccl/comm.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "nccl/driver_link.h"
#include "nccl/registrations.h"
#include "support/environment.h"
#include "support/handles.h"
#include "support/leaks.h"

namespace gradlink::fake {
namespace {

Handles<Comm, abi::CommHandle>& registry() {
  static auto& all = *new Handles<Comm, abi::CommHandle>;
  return all;
}

/// "N@RANK", the rank 0 when it is not said: the N-th collective of that rank, from 1.
bool faultHits(const char* name, int rank, std::uint64_t number) {
  const std::optional<std::string> value = fault(name);
  if (!value) return false;
  const std::size_t at = value->find('@');
  const double which = parseNumber(value->substr(0, at), name);
  const double whose = at == std::string::npos ? 0 : parseNumber(value->substr(at + 1), name);
  return whose == rank && which == static_cast<double>(number);
}

/// "GPU:MS": so much longer takes all that this GPU does with others, for real.
std::chrono::milliseconds slownessOf(int device) {
  const std::string own = std::to_string(device) + ":";
  for (const std::string& value : faultValues("nccl-slow")) {
    if (!value.starts_with(own)) continue;
    const double number = parseNumber(value.substr(own.size()), "GRADLINK_FAKE_FAULTS");
    return std::chrono::milliseconds(static_cast<int>(number));
  }
  return {};
}

const char* textOf(Joining joining) {
  switch (joining) {
    case Joining::duplicateGpu:
      return "Duplicate GPU detected";
    case Joining::otherVersion:
      return "Mismatched NCCL version detected";
    case Joining::badRank:
      return "this rank is there already, or the ranks expect different sizes";
    default:
      return "";
  }
}

/// A rank of this process has failed on the way.
std::atomic<bool> someFailed{false};

std::mutex lastErrorMutex;
std::string lastError;

__attribute__((destructor)) void reportAtExit() {
  std::vector<std::string> lines;
  const std::size_t left = Comm::left();
  if (left > 0) lines.push_back("not destroyed: " + std::to_string(left) + " communicators");
  for (const std::string& misuse : misuses()) lines.push_back(misuse);
  reportLeaks("nccl", lines);
}

}  // namespace

int libraryVersion() {
  constexpr int kUsual = 22809;
  return static_cast<int>(faultNumber("nccl-version").value_or(kUsual));
}

abi::Result complain(abi::Result result, const std::string& text) {
  const std::lock_guard lock(lastErrorMutex);
  lastError = text;
  return result;
}

const char* lastErrorText() {
  const std::lock_guard lock(lastErrorMutex);
  thread_local std::string copy;
  copy = lastError;
  return copy.c_str();
}

Comm::Comm(const std::string& hub, int rank, int size, int device, bool blocking)
    : rank(rank), size(size), device(device), blocking(blocking), port_(makePort(hub, rank)) {}

Comm::~Comm() {
  settle();
  forgetAll();
}

std::shared_ptr<Comm> Comm::of(abi::CommHandle handle) { return registry().find(handle); }
abi::CommHandle Comm::add(std::shared_ptr<Comm> comm) { return registry().add(std::move(comm)); }
void Comm::remove(abi::CommHandle handle) { registry().take(handle); }
std::size_t Comm::left() { return registry().size(); }

abi::Result Comm::join() {
  if (hasFault("nccl-never", std::to_string(rank))) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return aborted_.load(); });
    return abi::kInternalError;
  }
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  const RankInfo info{.rank = rank,
                      .size = size,
                      .device = device,
                      .version = libraryVersion(),
                      .process = static_cast<std::int32_t>(getpid()),
                      .reserved = 0,
                      .host = std::hash<std::string_view>()(name)};
  const Joining joining = port_->join(info, devices_);
  if (joining == Joining::joined) {
    for (const int other : devices_) DriverLink::get()->map(device, other);
    return abi::kSuccess;
  }
  if (joining == Joining::cut) return abi::kInternalError;
  return complain(abi::kInvalidUsage, textOf(joining));
}

void Comm::joinInBackground() {
  state(abi::kInProgress);
  job_ = std::thread([this] { state(join()); });
}

abi::Result Comm::finalize() {
  const auto drain = [this] {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return turn_ == launched_ || aborted_; });
    lock.unlock();
    port_->flush();
    return abi::kSuccess;
  };
  if (blocking) return drain();
  settle();
  state(abi::kInProgress);
  job_ = std::thread([this, drain] { state(drain()); });
  return abi::kInProgress;
}

void Comm::abort() {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }
  port_->cut();
  settle();
}

void Comm::settle() {
  if (job_.joinable()) job_.join();
}

abi::Result Comm::state() const {
  if (someFailed && hasFault("nccl-remote", std::to_string(rank))) return abi::kRemoteError;
  const std::lock_guard lock(mutex_);
  return state_;
}

void Comm::state(abi::Result result) {
  const std::lock_guard lock(mutex_);
  state_ = result;
}

void Comm::launched(abi::Result result) {
  const std::lock_guard lock(mutex_);
  if (state_ == abi::kInProgress) state_ = result;
}

void Comm::checkFaults(bool& fails, bool& stuck) {
  const std::uint64_t number = ++collectives_;
  fails = fails || faultHits("nccl-async", rank, number);
  stuck = stuck || faultHits("nccl-stuck", rank, number);
}

abi::Result Comm::launch(std::unique_ptr<Work> work) {
  const DriverLink& driver = *DriverLink::get();
  work->captured = driver.isCapturing(work->stream) != 0;
  Work* raw = work.release();
  {
    const std::lock_guard lock(mutex_);
    if (raw->captured) {
      captured_.emplace_back(raw);
      // The communicator keeps it: it must not keep the communicator.
      raw->comm.reset();
      raw->owner = weak_from_this();
    } else {
      raw->turn = launched_++;
    }
  }
  const cuda::Status status = driver.launchHostFunc(raw->stream, &Work::execute, raw);
  if (status == cuda::kSuccess) return abi::kSuccess;
  if (!raw->captured) {
    finished(*raw);
    delete raw;
  }
  return complain(abi::kUnhandledCudaError, "Cuda failure " + std::to_string(status));
}

bool Comm::waitForTurn(const Work& work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return aborted_ || work.captured || turn_ == work.turn; });
  return !aborted_;
}

void Comm::finished(const Work& work) {
  const std::lock_guard lock(mutex_);
  if (!work.captured) turn_ = std::max(turn_, work.turn + 1);
  changed_.notify_all();
}

void Comm::run(Work& work) {
  const DriverLink& driver = *DriverLink::get();
  if (waitForTurn(work)) {
    if (work.fails) {
      complain(abi::kSystemError, "injected: this rank's part of a collective failed");
      state(abi::kSystemError);
      someFailed = true;
    }
    if (work.fails || work.stuck) {
      // As a kernel whose peer is gone: until somebody aborts.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return aborted_.load(); });
    }
    if (const auto longer = slownessOf(device); longer.count() > 0) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, longer, [this] { return aborted_.load(); });
    }
    double clock = driver.now();
    bool going = !aborted_;
    for (const Entry& entry : work.collectives) {
      going = going && port_->collective(entry, clock);
    }
    if (going && !work.messages.empty()) going = port_->exchange(work.messages, clock);
    if (!going) {
      // Cut off, by an abort or by the loss of the hub: then nobody comes any more.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return aborted_.load(); });
    }
    driver.advanceTo(clock);
  }
  finished(work);
}

void Work::execute(void* data) {
  Work* work = static_cast<Work*>(data);
  if (work->captured) {
    if (const std::shared_ptr<Comm> comm = work->owner.lock()) comm->run(*work);
    return;
  }
  const std::unique_ptr<Work> own(work);
  own->comm->run(*own);
}

// ---- operations

int Comm::addOp(int type, double scale) {
  const std::lock_guard lock(mutex_);
  ops_.emplace(nextOp_, Op{type, scale});
  return nextOp_++;
}

bool Comm::removeOp(int op) {
  const std::lock_guard lock(mutex_);
  return ops_.erase(op) > 0;
}

bool Comm::scaleOf(int op, int type, double& scale) const {
  const std::lock_guard lock(mutex_);
  const auto found = ops_.find(op);
  if (found == ops_.end() || found->second.type != type) return false;
  scale = found->second.scale;
  return true;
}

}  // namespace gradlink::fake
