// A rank's way to its hub, in this process or in another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nccl/hub.h"

namespace gradlink::fake {

/// The hub's calls, of one rank.
class Port {
 public:
  virtual ~Port() = default;
  virtual Joining join(const RankInfo& info, std::vector<int>& devices) = 0;
  virtual bool collective(const Entry& entry, double& clock) = 0;
  virtual bool exchange(const std::vector<Message>& messages, double& clock) = 0;
  /// Until this process is not needed for what is done; see Hub::flush.
  virtual void flush() = 0;
  /// From any thread, at any time.
  virtual void cut() = 0;
};

/// Makes a hub that ranks of any process find by the name this returns.
std::string openHub();
/// The way for one rank. Goes to the hub when it joins.
std::unique_ptr<Port> makePort(const std::string& hub, int rank);

}  // namespace gradlink::fake
