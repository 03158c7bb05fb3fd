// Windows in the memory that the ranks of one host share: a put is one pass over memory.
//
// core/windows also works over this engine's wire, but needs a thread of the target. Between
// threads put, accumulate and get of 4 KiB take 150 to 260 times as long there (25 us for 0.1), of
// 1 MiB 2.3 to 2.9 times, of 16 MiB 1.4 to 3.0; between processes of 1 MiB 20 to 27 times, of
// 16 MiB 1.2 to 2.5. An update takes the same. (Medians of 21 pairs, two busy cores, November
// 2026.)
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "core/window.h"
#include "core/windows/table.h"
#include "shm/session.h"
#include "shm/shared_regions.h"

namespace gradlink::shm {

class ShmWindow final : public Window {
 public:
  /// Collective; on the thread of the communicator's calls. The first three must outlive it.
  ShmWindow(Communicator& communicator, Session& session, SharedRegions& regions,
            const WindowSpec& spec, const CallOptions& options);
  ~ShmWindow() override;

  void* data() override;
  const void* seen(int source) override;
  void put(void* values, std::span<const Neighbor> destinations, double selfWeight, bool accumulate,
           bool withP, Deadline) override;
  void get(std::span<const Neighbor> sources, bool withP, Deadline) override;
  void update(void* out, double selfWeight, std::span<const Neighbor> sources, std::size_t divisor,
              bool reset, bool withP, Deadline) override;
  std::vector<std::uint64_t> versions() override;
  double p() override;
  int tryLock(int owner, int other) override;
  void unlock(int owner, int other) override;
  void free(const CallOptions&) override;

 private:
  /// The lock and counters of one array: the rank's own, or a source's buffer.
  struct alignas(64) Head {
    /// 0, or 1 + the rank that uses the array.
    Flag lock;
    std::atomic<std::uint64_t> version;
    double p;
  };
  class Hold;

  Head& head(int rank, std::size_t slot) const;
  std::byte* array(int rank, std::size_t slot) const;
  std::atomic<std::uint32_t>& mutex(int owner, int other) const;
  /// The slot of `source` at `owner`; 0 is its own array. Throws invalidArgument if there is none.
  std::size_t slotOf(int owner, int source) const;
  /// Throws peerLost if one of these ranks was lost, or has left unless `left`.
  void checkUsable(const char* op, std::span<const Neighbor> peers, bool left) const;
  void checkUsable(const char* op, int peer, bool left, bool look) const;
  /// Whether to check again who is alive: a system call for each rank costs more than a small put.
  bool timeToLook() const;
  void meet(const WindowSpec& spec, const CallOptions& options);

  Communicator& communicator_;
  Session& session_;
  SharedRegions& regions_;
  const int rank_;
  const std::size_t size_;
  const std::size_t count_;
  const DType dtype_;
  const std::vector<int> sources_;
  void* own_;
  bool freed_ = false;
  mutable Deadline nextLook_ = Deadline::in(0);
  std::vector<BufferRef> refs_;
  std::vector<std::byte*> bases_;
  /// Set once the ranks have met.
  std::optional<WindowTable> table_;
};

}  // namespace gradlink::shm
