// What the ranks of a window tell each other when they make it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/window.h"

namespace gradlink {

class WindowTable {
 public:
  /// A pair that has no buffer.
  static constexpr std::int32_t kNoSlot = -1;

  /// Puts what each rank tells (`bytes` each) one after the other into `all`; `own` is what the
  /// ranks held here tell, likewise.
  using Exchange = std::function<void(const void* own, void* all, std::size_t bytes)>;

  /// Collective over the communicator, which holds one rank. Throws mismatch, the same on all
  /// ranks, where counts or types differ or a rank names a source that does not name it as a
  /// destination, or the other way round. `extra`: what a backend has to tell beside; equally long
  /// on all ranks.
  WindowTable(Communicator& communicator, const WindowSpec& spec, std::span<const std::byte> extra,
              const CallOptions& options);
  /// Collective over the processes of so many ranks; `specs`: of those held here.
  WindowTable(std::span<const WindowSpec> specs, int size, const Exchange& exchange);

  int size() const { return static_cast<int>(size_); }
  std::span<const std::byte> extra(int rank) const {
    return {told_.data() + static_cast<std::size_t>(rank) * width_ + kHeadBytes, extraBytes_};
  }
  /// Which of `owner`'s arrays `source` writes to: 0 its own, then one each source in the order of
  /// its list; kNoSlot: none.
  std::int32_t slot(int owner, int source) const;
  /// The owner's arrays: its own and one for each source.
  std::size_t slots(int owner) const;

 private:
  struct Head {
    std::uint64_t count;
    std::uint64_t dtype;
  };
  static constexpr std::size_t kHeadBytes = sizeof(Head);

  WindowTable(std::span<const WindowSpec> specs, int size, std::span<const std::byte> extra,
              const Exchange& exchange);
  void check() const;
  Head head(int rank) const;
  std::int32_t listed(int rank, std::size_t column) const;

  std::size_t size_;
  std::size_t extraBytes_;
  /// Bytes of a rank: head, extra, each rank's slot there, whether the rank writes to each.
  std::size_t width_;
  std::vector<std::byte> told_;
};

}  // namespace gradlink
