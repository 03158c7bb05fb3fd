#include "kvstore/allreduce/key_agreement.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/agreement.h"
#include "core/error.h"

namespace gradlink {
namespace {

const char* nameOf(SumKind kind) {
  switch (kind) {
    case SumKind::init:
      return "init";
    case SumKind::push:
      return "push";
    case SumKind::barrier:
      return "barrier";
    case SumKind::step:
      return "push for the optimizer";
    case SumKind::states:
      return "saving of states";
  }
  return "";
}

std::string describe(const Announcement& one) {
  if (one.kind == SumKind::barrier || one.kind == SumKind::states) return nameOf(one.kind);
  std::string text =
      std::string(nameOf(one.kind)) + " of " + std::to_string(one.count) + " " + nameOf(one.dtype);
  if (one.rowLength > 1) text += " in rows of " + std::to_string(one.rowLength);
  if (one.kind == SumKind::step) {
    text += ", after " + std::to_string(one.changes) + " changes of the optimizer or its rate";
  }
  return text;
}

bool sameOperation(const Announcement& a, const Announcement& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.count == b.count &&
         a.rowLength == b.rowLength && a.name == b.name && a.changes == b.changes;
}

}  // namespace

Agreement::Agreement(Communicator& comm)
    : comm_(comm),
      rank_(comm.heldRanks().front()),
      size_(comm.size()),
      left_(static_cast<std::size_t>(size_), false),
      received_(static_cast<std::size_t>(size_)) {}

bool Agreement::everybodyLeft() const {
  return std::all_of(left_.begin(), left_.end(), [](bool left) { return left; });
}

int Agreement::root() const {
  const auto found = std::find(left_.begin(), left_.end(), false);
  return found == left_.end() ? 0 : static_cast<int>(found - left_.begin());
}

void Agreement::exchange(double timeoutMs) {
  sent_.entries = static_cast<std::uint32_t>(std::min(kEntries, unsent_.size()));
  std::copy_n(unsent_.begin(), sent_.entries, sent_.list);
  unsent_.erase(unsent_.begin(), unsent_.begin() + sent_.entries);
  own_ += sent_.entries;
  // Earlier announcements are sent before the leaving.
  sent_.left = leaving_ && unsent_.empty() ? 1 : 0;
  exchangeOver(comm_, {.timeoutMs = timeoutMs})(&sent_, received_.data(), sizeof(Frame));
  for (int worker = 0; worker < size_; ++worker) {
    const Frame& frame = received_[static_cast<std::size_t>(worker)];
    for (std::uint32_t i = 0; i < frame.entries; ++i) take(worker, frame.list[i]);
    if (frame.left != 0) left_[static_cast<std::size_t>(worker)] = true;
  }
}

void Agreement::take(int worker, const Announcement& announced) {
  Line& line = lines_[announced.key];
  if (line.count.empty()) line.count.resize(static_cast<std::size_t>(size_), 0);
  const std::uint64_t index = line.count[static_cast<std::size_t>(worker)]++ - line.base;
  if (index == line.slots.size()) {
    line.slots.push_back({announced, worker, order_++, Deadline::Clock::now()});
    takeRows(line.slots.back(), worker, announced);
    return;
  }
  Slot& slot = line.slots[index];
  if (!sameOperation(slot.announced, announced)) {
    throw Error(ErrorCode::mismatch,
                "the workers' operations differ: operation " +
                    std::to_string(line.base + index + 1) + " of key number " +
                    std::to_string(announced.key) + " is " + describe(slot.announced) +
                    " on worker " + std::to_string(slot.by) + " and " + describe(announced) +
                    " on worker " + std::to_string(worker) +
                    "; keys must be initialised in the same order, with the same names, types and "
                    "shapes, and the optimizer set alike, on all workers")
        .withRank(worker);
  }
  if (slot.announced.rule != announced.rule) {
    throw Error(ErrorCode::mismatch,
                "the workers' optimizers differ: operation " +
                    std::to_string(line.base + index + 1) + " of key number " +
                    std::to_string(announced.key) + " uses another optimizer on worker " +
                    std::to_string(worker) + " than on worker " + std::to_string(slot.by) +
                    ", or other options or rates; call setOptimizer(), setUpdater() "
                    "and setLearningRate() alike on all workers")
        .withRank(worker);
  }
  slot.announced.priority = std::max(slot.announced.priority, announced.priority);
  takeRows(slot, worker, announced);
}

void Agreement::takeRows(Slot& slot, int worker, const Announcement& announced) const {
  if (announced.rows >= kWiderArray) {
    slot.whole = true;
    slot.wider = slot.wider || announced.rows == kWiderArray;
    return;
  }
  // Rows of halves are not summed before they are sent, so they may repeat.
  const bool tooMany = !isHalf(announced.dtype) && announced.rowLength != 0 &&
                       announced.rows > announced.count / announced.rowLength;
  if (announced.rowLength == 0 || tooMany) {
    throw Error(ErrorCode::mismatch, "worker " + std::to_string(worker) + " brings " +
                                         std::to_string(announced.rows) + " unique rows to " +
                                         describe(announced) + ", which has fewer")
        .withRank(worker);
  }
  if (slot.rows.empty()) slot.rows.resize(static_cast<std::size_t>(size_), 0);
  slot.rows[static_cast<std::size_t>(worker)] = announced.rows;
}

bool Agreement::ready(const Line& line) const {
  if (line.slots.empty()) return false;
  for (std::size_t worker = 0; worker < line.count.size(); ++worker) {
    if (line.count[worker] <= line.base && !left_[worker]) return false;
  }
  return true;
}

std::vector<ReadySum> Agreement::takeReady() {
  std::vector<Slot> slots;
  for (auto& [key, line] : lines_) {
    if (!ready(line)) continue;
    // The others may be ahead of a leaving worker.
    for (std::size_t worker = 0; worker < line.count.size(); ++worker) {
      const bool own = worker == static_cast<std::size_t>(rank_);
      if (line.count[worker] > line.base) {
        own_ -= own ? 1 : 0;
      } else {
        ++line.count[worker];
      }
    }
    slots.push_back(std::move(line.slots.front()));
    line.slots.pop_front();
    ++line.base;
  }
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) {
    return a.announced.priority != b.announced.priority
               ? a.announced.priority > b.announced.priority
               : a.order < b.order;
  });
  std::vector<ReadySum> ready;
  ready.reserve(slots.size());
  for (Slot& slot : slots) {
    const DType dtype = slot.announced.dtype;
    // Repeated rows are summed before the others' whole arrays are added.
    if (slot.whole && !slot.rows.empty() && isHalf(dtype)) slot.wider = true;
    if (slot.whole) slot.rows.clear();
    const Partial partial = slot.wider ? Partial(dtype, ReduceOp::sum) : Partial::none(dtype);
    ready.push_back({slot.announced, std::move(slot.rows), partial});
  }
  return ready;
}

void Agreement::checkTimeout(double timeoutMs, const std::vector<std::string>& names) const {
  const auto now = Deadline::Clock::now();
  for (const auto& [key, line] : lines_) {
    if (line.slots.empty() || line.count[static_cast<std::size_t>(rank_)] <= line.base) continue;
    const std::chrono::duration<double, std::milli> waited = now - line.slots.front().since;
    if (waited.count() < timeoutMs) continue;
    std::string missing;
    int first = -1;
    for (int worker = 0; worker < size_; ++worker) {
      const auto at = static_cast<std::size_t>(worker);
      if (line.count[at] > line.base || left_[at]) continue;
      missing += (first < 0 ? "" : ", ") + std::to_string(worker);
      if (first < 0) first = worker;
    }
    std::string what = nameOf(line.slots.front().announced.kind);
    if (key != kBarrierKey) what.append(" of key ").append(key < names.size() ? names[key] : "?");
    what.append(": the deadline has passed and these workers have not arrived: ").append(missing);
    what.append(". Does every worker do the same operations? timeoutMs sets the deadline");
    throw Error(ErrorCode::timeout, what).withRank(first);
  }
}

}  // namespace gradlink
