#include "mpi/agreement.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "mpi/tags.h"

namespace gradlink::mpi {
namespace {

// Two ranks exchange whole inputs of this size faster than they agree first; with more ranks
// everybody's inputs go to everybody, so the sum is bounded instead.
constexpr std::size_t kMostOfOne = 16 << 10;
constexpr std::size_t kMostOfAll = 64 << 10;
constexpr std::size_t kLeast = 256;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

std::string listOf(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

Agreement::Agreement(Link& link)
    : link_(link),
      mostBytes_(
          std::clamp(kMostOfAll / static_cast<std::size_t>(link.size()), kLeast, kMostOfOne)),
      capacity_(static_cast<std::size_t>(link.size()) *
                (sizeof(Announcement) + padded(mostBytes_))),
      gathered_(new std::byte[capacity_]),
      offset_(static_cast<std::size_t>(link.size())) {
  ends_.reserve(static_cast<std::size_t>(link.size()));
}

void Agreement::index(std::size_t from, std::size_t to) {
  while (from < to) {
    Announcement own;
    std::memcpy(&own, gathered_.get() + from, sizeof(own));
    offset_[static_cast<std::size_t>(own.rank)] = from;
    from += sizeof(own) + padded(own.bytes);
    ends_.push_back(from);
  }
}

void Agreement::meet(const Shape& shape, std::span<const std::byte> payload, Wait& wait) {
  const int n = link_.size();
  link_.beginCall();
  const Announcement own{shape.count,
                         shape.root,
                         static_cast<std::uint8_t>(shape.kind),
                         static_cast<std::uint8_t>(shape.dtype),
                         static_cast<std::uint8_t>(shape.op),
                         0,
                         link_.rank(),
                         static_cast<std::uint32_t>(payload.size())};
  std::memcpy(gathered_.get(), &own, sizeof(own));
  if (!payload.empty()) {
    std::memcpy(gathered_.get() + sizeof(own), payload.data(), payload.size());
  }
  ends_.clear();
  index(0, sizeof(own) + padded(payload.size()));
  wait.as(Wait::Kind::agreement);
  for (int distance = 1; distance < n; distance *= 2) {
    const auto known = ends_.size();
    const int to = (link_.rank() - distance + n) % n;
    const int from = (link_.rank() + distance) % n;
    const auto count = static_cast<std::size_t>(std::min(distance, n - distance));
    const std::size_t have = ends_[known - 1];
    RequestHandle incoming;
    RequestHandle outgoing;
    MessageStatus status;
    link_.irecv(gathered_.get() + have, capacity_ - have, from, kAgreeTag, &incoming);
    link_.isend(gathered_.get(), ends_[count - 1], to, kAgreeTag, &outgoing);
    wait.on(from).came();
    // The memory is this object's: what is given up here may stay with MPI no longer than it.
    try {
      link_.await(&incoming, wait, &status);
    } catch (...) {
      std::vector<RequestHandle> none;
      std::vector<RequestHandle> sends{outgoing};
      link_.giveUp(none, sends);
      throw;
    }
    link_.await(&outgoing, wait.on(to));
    index(have, have + status.bytes);
  }
  wait.as(Wait::Kind::data).came();
  for (int r = 0; r < n; ++r) {
    const Announcement& other = at(r);
    if (other.count != own.count || other.kind != own.kind || other.dtype != own.dtype ||
        other.op != own.op || other.root != own.root) {
      mismatch(shape);
    }
  }
}

std::span<const std::byte> Agreement::payload(int rank) const {
  const Announcement& announcement = at(rank);
  return {reinterpret_cast<const std::byte*>(&announcement + 1), announcement.bytes};
}

void Agreement::mismatch(const Shape& shape) const {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (int r = 0; r < link_.size(); ++r) {
    const Announcement& a = at(r);
    const Shape theirs{static_cast<Kind>(a.kind), static_cast<DType>(a.dtype),
                       static_cast<ReduceOp>(a.op), a.root, a.count};
    const std::string text = theirs == kNodesCall      ? "nodes"
                             : theirs == kOpenWireCall ? "openWire"
                                                       : describe(theirs);
    auto same =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == text; });
    if (same == groups.end()) same = groups.insert(groups.end(), {text, {}});
    same->second.push_back(r);
  }
  std::string message = std::string(nameOf(shape.kind)) + ": the ranks made different calls: ";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    message += (i == 0 ? "" : "; ") + listOf(groups[i].second) + " called " + groups[i].first;
  }
  message += ". All ranks must call the same operation with the same count, type, op and root";
  // To blame is the first that differs from rank 0: the same on all sides.
  throw Error(ErrorCode::mismatch, message)
      .withRank(groups.size() > 1 ? groups[1].second.front() : -1)
      .withOp(nameOf(shape.kind))
      .stillUsable();
}

std::vector<std::vector<std::byte>> Agreement::exchange(std::span<const std::byte> own,
                                                        std::size_t most, Wait& wait) {
  std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(link_.size()));
  Batch batch(link_);
  for (int i = 1; i < link_.size(); ++i) {
    const int from = (link_.rank() + i) % link_.size();
    auto& theirs = all[static_cast<std::size_t>(from)];
    theirs.resize(most);
    batch.receive(theirs.data(), most, from, kMoveTag);
  }
  // All of one length: MPI then needs to tell nobody how much came.
  auto& mine = all[static_cast<std::size_t>(link_.rank())];
  mine.assign(own.begin(), own.end());
  mine.resize(most);
  for (int i = 1; i < link_.size(); ++i) {
    batch.send(mine.data(), most, (link_.rank() - i + link_.size()) % link_.size(), kMoveTag);
  }
  batch.wait(wait);
  return all;
}

}  // namespace gradlink::mpi
