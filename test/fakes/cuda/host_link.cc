#include "cuda/host_link.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "support/environment.h"
#include "support/machine.h"

namespace gradlink::fake {
namespace {

constexpr const char* kSetting = "GRADLINK_FAKE_DUPLEX";
/// What a direction keeps: 18.4 to 19.6 of 26.0 GB/s by the copy engine of an A100 (nvbandwidth's
/// README), and by the multiprocessors of an H200 as we saw it.
constexpr double kEngineShare = 0.72;
constexpr double kKernelShare = 0.6;

struct HostLink {
  std::array<int, 2> queued{};
  bool meet = false;
};

struct HostLinks {
  std::mutex mutex;
  std::array<HostLink, 64> of;
  static HostLinks& get() {
    static HostLinks& links = *new HostLinks;
    return links;
  }
};

std::optional<double> askedShare() {
  const char* const text = std::getenv(kSetting);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const double share = parseNumber(text, kSetting);
  if (!(share > 0 && share <= 1)) badSetting(kSetting, text);
  return share;
}

}  // namespace

std::shared_ptr<const HostCopy> HostCopy::queue(int from, int to) {
  if (std::min(from, to) != kHost || std::max(from, to) < 0) return nullptr;
  return std::make_shared<const HostCopy>(std::max(from, to), to == kHost);
}

HostCopy::HostCopy(int gpu, bool toHost) : gpu_(gpu), toHost_(toHost) {
  HostLinks& links = HostLinks::get();
  const std::lock_guard lock(links.mutex);
  HostLink& link = links.of[gpu_];
  ++link.queued[toHost_];
  if (link.queued[!toHost_] > 0) link.meet = true;
}

HostCopy::~HostCopy() {
  HostLinks& links = HostLinks::get();
  const std::lock_guard lock(links.mutex);
  HostLink& link = links.of[gpu_];
  --link.queued[toHost_];
  if (link.queued[0] + link.queued[1] == 0) link.meet = false;
}

double HostCopy::stretch(bool byKernel) const {
  static const std::optional<double> asked = askedShare();
  HostLinks& links = HostLinks::get();
  const std::lock_guard lock(links.mutex);
  if (!links.of[gpu_].meet) return 1;
  return 1 / asked.value_or(byKernel ? kKernelShare : kEngineShare);
}

}  // namespace gradlink::fake
