#include "core/windows/table.h"

#include <cstring>
#include <string>

#include "core/error.h"

namespace gradlink {
namespace {

[[noreturn]] void windowsDisagree(int first, int second, const std::string& text) {
  throw harmless(ErrorCode::mismatch, "createWindow",
                 "rank " + std::to_string(first) + " and rank " + std::to_string(second) +
                     " disagree: " + text)
      .withRank(second);
}

}  // namespace

WindowTable::WindowTable(Communicator& communicator, const WindowSpec& spec,
                         std::span<const std::byte> extra, const CallOptions& options)
    : WindowTable({&spec, 1}, communicator.size(), extra,
                  [&](const void* own, void* all, std::size_t bytes) {
                    const void* const in[] = {own};
                    void* const out[] = {all};
                    communicator.allGather({in, out}, bytes, DType::uint8, options);
                  }) {}

WindowTable::WindowTable(std::span<const WindowSpec> specs, int size, const Exchange& exchange)
    : WindowTable(specs, size, {}, exchange) {}

WindowTable::WindowTable(std::span<const WindowSpec> specs, int size,
                         std::span<const std::byte> extra, const Exchange& exchange)
    : size_(static_cast<std::size_t>(size)),
      extraBytes_(extra.size()),
      width_(kHeadBytes + extraBytes_ + 2 * size_ * sizeof(std::int32_t)),
      told_(width_ * size_) {
  std::vector<std::byte> rows(specs.size() * width_);
  std::byte* row = rows.data();
  for (const WindowSpec& spec : specs) {
    const Head head{spec.count, static_cast<std::uint64_t>(spec.dtype)};
    std::memcpy(row, &head, sizeof(head));
    if (!extra.empty()) std::memcpy(row + kHeadBytes, extra.data(), extra.size());
    std::vector<std::int32_t> lists(2 * size_, kNoSlot);
    for (std::size_t i = 0; i < spec.sources.size(); ++i)
      lists[static_cast<std::size_t>(spec.sources[i])] = static_cast<std::int32_t>(i + 1);
    for (const int to : spec.destinations) lists[size_ + static_cast<std::size_t>(to)] = 1;
    std::memcpy(row + kHeadBytes + extraBytes_, lists.data(), lists.size() * sizeof(std::int32_t));
    row += width_;
  }
  exchange(rows.data(), told_.data(), width_);
  check();
}

WindowTable::Head WindowTable::head(int rank) const {
  Head head;
  std::memcpy(&head, told_.data() + static_cast<std::size_t>(rank) * width_, sizeof(head));
  return head;
}

std::int32_t WindowTable::listed(int rank, std::size_t column) const {
  std::int32_t value = kNoSlot;
  std::memcpy(&value,
              told_.data() + static_cast<std::size_t>(rank) * width_ + kHeadBytes + extraBytes_ +
                  column * sizeof(value),
              sizeof(value));
  return value;
}

std::int32_t WindowTable::slot(int owner, int source) const {
  if (owner < 0 || owner >= size() || source < 0 || source >= size()) return kNoSlot;
  return owner == source ? 0 : listed(owner, static_cast<std::size_t>(source));
}

std::size_t WindowTable::slots(int owner) const {
  std::size_t slots = 0;
  for (int r = 0; r < size(); ++r) slots += slot(owner, r) != kNoSlot ? 1 : 0;
  return slots;
}

void WindowTable::check() const {
  const Head first = head(0);
  for (int r = 0; r < size(); ++r) {
    const Head own = head(r);
    if (own.count != first.count || own.dtype != first.dtype) {
      windowsDisagree(0, r, "other counts or element types");
    }
    for (int to = 0; to < size(); ++to) {
      if (r == to) continue;
      const bool sends = listed(r, size_ + static_cast<std::size_t>(to)) != kNoSlot;
      const bool awaited = listed(to, static_cast<std::size_t>(r)) != kNoSlot;
      if (sends != awaited) {
        windowsDisagree(r, to,
                        sends ? "the second does not name the first as a source"
                              : "the first does not name the second as a destination");
      }
    }
  }
}

}  // namespace gradlink
