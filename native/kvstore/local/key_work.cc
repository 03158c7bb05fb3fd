#include "kvstore/local/key_work.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "core/kernels/reduce_kernels.h"
#include "kvstore/base/compression.h"

namespace gradlink {
namespace {

// Bytes of a part over all arrays: 50 us hide the cost of claiming and limit urgent keys' waits.
constexpr std::size_t kPartBytes = 1 << 20;

template <class Pointer>
Pointer shifted(Pointer base, std::size_t bytes) {
  if constexpr (std::is_const_v<std::remove_pointer_t<Pointer>>) {
    return static_cast<const std::byte*>(base) + bytes;
  } else {
    return static_cast<std::byte*>(base) + bytes;
  }
}

template <class Pointer>
std::vector<Pointer> shifted(const std::vector<Pointer>& bases, std::size_t bytes) {
  std::vector<Pointer> moved;
  moved.reserve(bases.size());
  for (const Pointer base : bases) moved.push_back(shifted(base, bytes));
  return moved;
}

std::size_t ceilDivide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace

KeyLane::KeyLane(Scheduler& scheduler, const UpdateRule& rule,
                 const GradientCompression* compression, Key key)
    : Lane(std::move(key)),
      scheduler(scheduler),
      rule(rule),
      compression(compression),
      memory_(bytes() + kValueOffset) {}

std::unique_ptr<Work> KeyLane::plan() {
  auto work = std::make_unique<KeyWork>(*this);
  work->items.push_back(queue.take());
  // Copies each block to the pulls' outputs while it is cached.
  const KeyItem& head = *work->items.front();
  const bool carries = carriesPulls(head.operation.kind, head);
  while (carries && queue.pullIsNext()) work->items.push_back(queue.take());
  work->prepare();
  return work;
}

void KeyWork::prepare() {
  const KeyItem& first = head();
  const OperationKind kind = first.operation.kind;
  inputs_ = first.operation.in;
  for (const KeyItemPtr& item : items) {
    const auto& outputs = item->operation.out;
    outputs_.insert(outputs_.end(), outputs.begin(), outputs.end());
  }
  if (kind == OperationKind::rowSparsePull) {
    stages_ = {Stage::rows};
  } else if (kind == OperationKind::pull) {
    stages_ = {Stage::copyOut};
  } else {
    sparse_ = !first.operation.inRows.empty();
    if (sparse_) return addRowStages();
    compress_ = kind != OperationKind::init && key_.compresses();
    if (first.external) {
      if (compress_ || inputs_.size() > 1) stages_.push_back(Stage::merge);
      stages_.push_back(Stage::external);
      if (!outputs_.empty()) stages_.push_back(Stage::copyOut);
    } else if (first.state) {
      if (compress_) stages_.push_back(Stage::merge);
      stages_.push_back(Stage::update);
    } else {
      stages_ = {Stage::assign};
    }
  }
}

void KeyWork::addRowStages() {
  const KeyItem& first = head();
  stages_ = {Stage::gather};
  if (first.external) {
    stages_.insert(stages_.end(), {Stage::spread, Stage::external});
  } else if (!first.state) {
    stages_.push_back(Stage::assignRows);
  } else if (first.state->optimizer->lazy()) {
    stages_.push_back(Stage::updateRows);
  } else {
    stages_.insert(stages_.end(), {Stage::spread, Stage::update});
    return;
  }
  if (!outputs_.empty()) stages_.push_back(Stage::copyOut);
}

std::optional<Work::Phase> KeyWork::next() {
  if (!begun_) {
    begun_ = true;
    if (head().error) std::rethrow_exception(head().error);
    return begin(stages_[0]);
  }
  if (stages_[stage_] == Stage::update) {
    update_->endPhase(updatePhase_);
    if (++updatePhase_ < update_->phases()) return cut(inputs_.size() + 2);
  }
  if (++stage_ == stages_.size()) return std::nullopt;
  return begin(stages_[stage_]);
}

Work::Phase KeyWork::begin(Stage stage) {
  results_ = {head().touched, ResultStores::kStoreWorks + static_cast<std::uint32_t>(stage)};
  switch (stage) {
    case Stage::assign:
      if (compress_) makeResiduals();
      assignTargets_ = outputs_;
      assignTargets_.push_back(key_.value());
      return cut(inputs_.size() + assignTargets_.size());
    case Stage::merge:
      if (compress_) makeResiduals();
      if (key_.merged.size() < key_.bytes()) key_.merged = AlignedBuffer(key_.bytes());
      return cut(inputs_.size() + 1);
    case Stage::update:
      beginUpdate();
      update_->handOut(outputs_);
      return cut(inputs_.size() + outputs_.size() + 2);
    case Stage::external: {
      const void* received = stage_ == 0 ? inputs_[0] : key_.merged.data();
      head().external->update(
          {key_.id, key_.dtype, key_.count, received, key_.value()},
          [this](std::exception_ptr error) { key_.scheduler.resume(*this, std::move(error)); });
      return {0, true};
    }
    case Stage::copyOut:
      return cut(outputs_.size() + 1);
    case Stage::spread:
      if (key_.merged.size() < key_.bytes()) key_.merged = AlignedBuffer(key_.bytes());
      return {1};
    case Stage::updateRows:
      if (key_.count == 0) return {0};
      beginUpdate();
      return {1};
    case Stage::gather:
    case Stage::assignRows:
      return {1};
    case Stage::rows:
      rows_ = head().operation.rows;
      sortEachOnce(rows_);
      partRows_ = std::max<std::size_t>(
          1, kPartBytes / 2 / std::max<std::size_t>(1, key_.rowLength * sizeOf(key_.dtype)));
      return {key_.count == 0 ? 0 : ceilDivide(key_.count / key_.rowLength, partRows_)};
  }
  return {0};
}

Work::Phase KeyWork::cut(std::size_t streams) {
  const std::size_t blockBytes = kUpdateBlock * sizeOf(key_.dtype) * streams;
  partBlocks_ = std::max<std::size_t>(1, kPartBytes / blockBytes);
  return {ceilDivide(ceilDivide(key_.count, kUpdateBlock), partBlocks_)};
}

KeyWork::Range KeyWork::rangeOf(std::size_t part) const {
  const std::size_t step = partBlocks_ * kUpdateBlock;
  const std::size_t first = part * step;
  return {first, std::min(step, key_.count - first)};
}

void KeyWork::beginUpdate() {
  KeyState& state = *head().state;
  makeOnHost(state, key_, key_.value());
  if (stages_[stage_] == Stage::updateRows) {
    inputs_ = {touched_.data.data()};
  } else if (compress_ || sparse_) {
    inputs_ = {key_.merged.data()};
  }
  update_ = std::make_unique<UpdateRun>(*state.optimizer, *state.state, head().numbers,
                                        key_.value(), inputs_);
}

void KeyWork::makeResiduals() {
  while (key_.residuals.size() < inputs_.size()) key_.residuals.emplace_back(key_.bytes());
}

void KeyWork::run(std::size_t part) {
  switch (stages_[stage_]) {
    case Stage::assign:
      return sumInto(assignTargets_, rangeOf(part));
    case Stage::merge:
      return sumInto({key_.merged.data()}, rangeOf(part));
    case Stage::update:
      return updateBlocks(part);
    case Stage::copyOut:
      return copyOut(rangeOf(part));
    case Stage::rows:
      return copyRows(part);
    case Stage::gather:
      return gather();
    case Stage::spread:
      return spreadInto(key_.merged.data());
    case Stage::assignRows:
      return spreadInto(key_.value());
    case Stage::updateRows:
      return updateRows();
    case Stage::external:
      return;
  }
}

void KeyWork::gather() {
  std::vector<SomeRows> parts;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    parts.push_back({inputs_[i], head().operation.inRows[i]});
  }
  touched_ = sumRows(parts, key_.rowLength, Partial::none(key_.dtype));
}

void KeyWork::spreadInto(void* to) const { spreadRows(touched_, key_.rowLength, to, key_.count); }

void KeyWork::updateRows() { update_->runRows(touched_, key_.rowLength); }

void KeyWork::sumInto(const std::vector<void*>& targets, Range range) {
  const std::size_t size = sizeOf(key_.dtype);
  results_.write(range.count * size * targets.size(), [&](bool streaming) {
    if (compress_) return compressedSumInto(targets, range, streaming);
    reduceMany(shifted(targets, range.first * size), shifted(inputs_, range.first * size),
               range.count, key_.dtype, ReduceOp::sum, streaming);
  });
}

void KeyWork::compressedSumInto(const std::vector<void*>& targets, Range range, bool streaming) {
  thread_local std::vector<float> decoded;
  const std::size_t devices = inputs_.size();
  decoded.resize(devices * kUpdateBlock);
  std::vector<const void*> parts(devices);
  for (std::size_t device = 0; device < devices; ++device) {
    parts[device] = decoded.data() + device * kUpdateBlock;
  }
  const std::size_t end = range.first + range.count;
  for (std::size_t first = range.first; first < end; first += kUpdateBlock) {
    const std::size_t count = std::min(kUpdateBlock, end - first);
    for (std::size_t device = 0; device < devices; ++device) {
      key_.compression->quantize(static_cast<const float*>(inputs_[device]) + first,
                                 static_cast<float*>(key_.residuals[device].data()) + first,
                                 decoded.data() + device * kUpdateBlock, count);
    }
    reduceMany(shifted(targets, first * sizeof(float)), parts, count, DType::float32, ReduceOp::sum,
               streaming);
  }
}

void KeyWork::updateBlocks(std::size_t part) {
  const std::size_t first = part * partBlocks_;
  const std::size_t end = std::min(first + partBlocks_, update_->blocks());
  const bool writes = updatePhase_ + 1 == update_->phases();
  const std::size_t bytes = (end - first) * kUpdateBlock * sizeOf(key_.dtype);
  results_.write(writes ? bytes * outputs_.size() : 0,
                 [&](bool streaming) { update_->runBlocks(updatePhase_, first, end, streaming); });
}

void KeyWork::copyOut(Range range) {
  const std::size_t size = sizeOf(key_.dtype);
  const auto* const from = static_cast<const std::byte*>(key_.value()) + range.first * size;
  results_.write(range.count * size * outputs_.size(), [&](bool streaming) {
    copyMany(shifted(outputs_, range.first * size), from, range.count * size, streaming);
  });
}

void KeyWork::copyRows(std::size_t part) {
  const std::size_t rowBytes = key_.rowLength * sizeOf(key_.dtype);
  const std::size_t first = part * partRows_;
  const std::size_t end = std::min(first + partRows_, key_.count / key_.rowLength);
  const auto* value = static_cast<const std::byte*>(key_.value());
  for (void* output : outputs_) {
    auto* out = static_cast<std::byte*>(output);
    const bool compact = head().operation.compact;
    if (!compact) std::memset(out + first * rowBytes, 0, (end - first) * rowBytes);
    auto row = std::lower_bound(rows_.begin(), rows_.end(), static_cast<std::int64_t>(first));
    for (; row != rows_.end() && *row < static_cast<std::int64_t>(end); ++row) {
      const std::size_t at = static_cast<std::size_t>(*row) * rowBytes;
      const auto index = static_cast<std::size_t>(row - rows_.begin());
      copyBytes(out + (compact ? index * rowBytes : at), value + at, rowBytes);
    }
  }
}

}  // namespace gradlink
