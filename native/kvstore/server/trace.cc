#include "kvstore/server/trace.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "core/deadline.h"
#include "kvstore/protocol/protocol.h"

namespace gradlink {
namespace {

constexpr const char* kMessages[] = {
    "define",          "init",           "push",       "pull",       "pullRows", "setOptimizer",
    "setLearningRate", "setCompression", "saveStates", "loadStates", "barrier",  "command",
    "deadNodes",       "report",         "leave"};
static_assert(std::size(kMessages) == static_cast<std::size_t>(dist::MessageType::value));

}  // namespace

std::vector<std::string> ServerTrace::names() {
  std::vector<std::string> all{"merge", "update", "answer"};
  all.insert(all.end(), std::begin(kMessages), std::end(kMessages));
  return all;
}

void ServerTrace::start() {
  const std::lock_guard lock(mutex_);
  events_.clear();
  lost_ = 0;
  on_ = true;
}

ServerTrace::Taken ServerTrace::take() {
  const std::lock_guard lock(mutex_);
  return {std::exchange(events_, {}), keys_, std::exchange(lost_, 0), pipelines_};
}

void ServerTrace::setPipelines(int count) {
  const std::lock_guard lock(mutex_);
  pipelines_ = count;
}

std::uint32_t ServerTrace::keyNumber(const std::string& key) {
  const std::lock_guard lock(mutex_);
  keys_.push_back(key);
  return static_cast<std::uint32_t>(keys_.size() - 1);
}

void ServerTrace::add(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() < kMostEvents) {
    events_.push_back(event);
  } else {
    ++lost_;
  }
}

double ServerTrace::now() {
  return std::chrono::duration<double>(Deadline::Clock::now().time_since_epoch()).count();
}

}  // namespace gradlink
