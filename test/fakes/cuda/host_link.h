// The links between GPUs and the memory of the host. Over PCIe, requests and acknowledgements of
// one direction share the link with the data of the other: a copy whose opposite runs beside it is
// slower.
#pragma once

#include <memory>

namespace gradlink::fake {

/// A copy between a GPU and page-locked memory of the host, from when it is queued until it has
/// ended.
///
/// Copies that are queued in both directions meet, and do so until none is left of either: so the
/// times of what was queued together do not depend on which thread came first.
class HostCopy {
 public:
  /// Between places (see memory.h); null where they are not a GPU and the host.
  static std::shared_ptr<const HostCopy> queue(int from, int to);
  HostCopy(int gpu, bool toHost);
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;
  ~HostCopy();

  /// By how much longer it takes than alone.
  double stretch(bool byKernel) const;

 private:
  const int gpu_;
  const bool toHost_;
};

}  // namespace gradlink::fake
