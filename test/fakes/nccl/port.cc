#include "nccl/port.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <random>

#include "nccl/wire.h"

namespace gradlink::fake {
namespace {

/// The hubs of this process, while their names are in use. Never destroyed: threads that serve
/// other processes may outlast main.
struct Hubs {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Hub>> byName;
};

Hubs& hubs() {
  static Hubs& all = *new Hubs;
  return all;
}

class LocalPort final : public Port {
 public:
  LocalPort(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  Joining join(const RankInfo& info, std::vector<int>& devices) override {
    return hub_->join(info, devices);
  }
  bool collective(const Entry& entry, double& clock) override {
    return hub_->collective(rank_, entry, clock, false);
  }
  bool exchange(const std::vector<Message>& messages, double& clock) override {
    return hub_->exchange(rank_, messages, clock, false);
  }
  void flush() override { hub_->flush(rank_); }
  void cut() override { hub_->cut(rank_); }

 private:
  std::shared_ptr<Hub> hub_;
  int rank_;
};

}  // namespace

std::string openHub() {
  std::random_device random;
  char token[32];
  std::snprintf(token, sizeof(token), "%08x%08x%08x", random(), random(), random());
  auto hub = std::make_shared<Hub>();
  std::string name = serve(token, hub);
  const std::lock_guard lock(hubs().mutex);
  hubs().byName.emplace(name, std::move(hub));
  return name;
}

std::unique_ptr<Port> makePort(const std::string& name, int rank) {
  {
    const std::lock_guard lock(hubs().mutex);
    const auto found = hubs().byName.find(name);
    if (found != hubs().byName.end()) return std::make_unique<LocalPort>(found->second, rank);
  }
  return connectPort(name);
}

}  // namespace gradlink::fake
