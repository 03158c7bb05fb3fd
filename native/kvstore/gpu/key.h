// One key of a store on GPUs, and what is done to it in one go.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/kernels/copy_bytes.h"
#include "cuda/memory.h"
#include "kvstore/base/rows.h"
#include "kvstore/key.h"
#include "kvstore/queue.h"
#include "kvstore/store.h"

namespace gradlink {

/// An array and the place whose memory it is.
struct GpuArray {
  void* data;
  /// kHostPlace: host memory.
  std::size_t place;
};
inline constexpr std::size_t kHostPlace = ~std::size_t{0};

struct GpuKey;

/// What is to be done to one key, with the places of its arrays. It never changes: a call that
/// comes again brings the same ones.
struct GpuOperation {
  GpuKey* key = nullptr;
  OperationKind kind = OperationKind::push;
  std::vector<GpuArray> in;
  std::vector<GpuArray> out;
  /// As an Operation's.
  std::vector<std::int64_t> rows;
  std::vector<std::vector<std::int64_t>> inRows;
  /// What it comes to while its key is cut: one for each part, where the key has parts.
  std::vector<GpuOperation> inParts;
};
using GpuOperations = std::vector<GpuOperation>;

/// Operations [from, to) of a call, asked for once.
struct GpuRequest {
  std::shared_ptr<const GpuOperations> operations;
  std::size_t from = 0;
  std::size_t to = 0;
  std::int32_t priority = 0;
  /// Of them all.
  std::shared_ptr<Ticket> ticket;
};

/// One of them, with what was fixed when it was admitted.
struct GpuItem : Admission {
  /// Shares the whole call's.
  std::shared_ptr<const GpuOperation> operation;
  std::int32_t priority = 0;
  std::shared_ptr<Ticket> ticket;

  GpuKey& key() const { return *operation->key; }
};
inline OperationKind kindOf(const GpuItem& item) { return item.operation->kind; }
inline std::int32_t priorityOf(const GpuItem& item) { return item.priority; }

struct GpuKey : Key {
  GpuKey() = default;
  explicit GpuKey(Key key) : Key(std::move(key)) {}

  /// Of the places of the store, the one where the value is.
  std::size_t owner = 0;

  // ---- where GPUs share the optimizer's work (gpu/shards.h)
  /// Those that the key can be cut into; none where it always stays whole.
  std::vector<std::unique_ptr<GpuKey>> parts;
  /// Whether they have the value, and what belongs to it, in place of the key.
  bool cut = false;
  /// Why it is cut still, although it is used in a way that needs it whole.
  std::exception_ptr notJoined;
  /// Whether its rows are asked for alone: then it is whole from there on.
  std::atomic<bool> ofRows = false;
  /// Of a part: the key, and which of its parts.
  GpuKey* whole = nullptr;
  std::size_t part = 0;

  /// Page-locked memory for one value, the index-th of the key's.
  void* room(std::size_t index) { return room(index, bytes()); }
  /// For a part of a value; it grows with what is asked for, so that the few rows of a large key
  /// lock few pages.
  void* room(std::size_t index, std::size_t part) {
    if (staged.size() <= index) staged.resize(index + 1);
    cuda::PinnedMemory& own = staged[index];
    if (own.bytes() < part)
      own = cuda::PinnedMemory(std::min(bytes(), std::max(part, 2 * own.bytes())));
    return own.data();
  }

  // ---- what the site keeps for it
  /// On the owner; for `local` in pinned memory.
  cuda::DeviceMemory value;
  cuda::PinnedMemory hostValue;
  /// The value by place, but for the owner's, where NCCL left a push's sum on all: what is pulled
  /// then is there already. Empty until such a push.
  std::vector<cuda::DeviceMemory> copies;
  /// Whether they are the value.
  bool copiesCurrent = false;
  /// Whether there was no memory for them.
  bool copiesLack = false;
  /// With them.
  void* valueOn(std::size_t place) { return place == owner ? value.data() : copies[place].data(); }
  /// Compression's error feedback, one array for each that is pushed.
  std::vector<cuda::DeviceMemory> residuals;
  /// Arrays on their way through the host; for updaters that run outside, what was received and
  /// what is stored.
  std::vector<cuda::PinnedMemory> staged;

  // ---- of the engine's thread
  KeyQueue<GpuItem> queue;
};

/// What is to be copied to an array of the host once it has arrived in page-locked memory.
struct GpuLanding {
  void* to;
  const void* from;
};

/// A push (or init) with the pulls behind it, a group of pulls, or one rowSparsePull.
class GpuUnit {
 public:
  /// Makes it one of another key, with nothing in it; it keeps the memory that it has.
  void reset(GpuKey& key) {
    key_ = &key;
    items.clear();
    in = {};
    out.clear();
    landings.clear();
    touched = {};
    blocks = false;
  }
  GpuKey& key() const { return *key_; }

  /// The first decides what is done; its `in` and the `out` of all are here.
  std::vector<GpuItem> items;
  std::span<const GpuArray> in;
  std::vector<GpuArray> out;
  /// What `in` is once rows have been added up.
  GpuArray gathered{};
  std::vector<GpuLanding> landings;
  /// What a lazy push brings.
  SortedRows touched;
  /// Nothing else of the key begins before it has ended.
  bool blocks = false;

  const GpuItem& head() const { return items.front(); }
  OperationKind kind() const { return head().operation->kind; }
  /// Whether it pushes rows; they are on the host, and `in` has a part of them for each device.
  bool ofRows() const { return !head().operation->inRows.empty(); }
  /// Whether such a push steps its rows alone.
  bool isLazy() const { return ofRows() && head().state && head().state->optimizer->lazy(); }
  /// Adds rows up when the unit begins: a lazy push has them in `touched` then, any other becomes
  /// one of a whole array in page-locked memory of the key.
  void gatherRows();
  /// Whether an array of it goes through page-locked memory of the key.
  bool visitsHost() const {
    const auto onHost = [](const GpuArray& array) { return array.place == kHostPlace; };
    return kind() != OperationKind::init &&
           (std::ranges::any_of(in, onHost) || std::ranges::any_of(out, onHost));
  }
  /// When the devices are done.
  void land() const {
    for (const GpuLanding& one : landings) copyBytes(one.to, one.from, key_->bytes());
  }
  /// Roughly what it moves.
  std::size_t bytes() const { return key_->bytes() * (in.size() + out.size() + 1); }

 private:
  GpuKey* key_ = nullptr;
};

}  // namespace gradlink
