#include "messages/agreement.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "core/agreement.h"
#include "messages/tags.h"

namespace gradlink::messages {
namespace {

// Two ranks exchange whole inputs of this size faster than they agree first. With more ranks all
// inputs go to all ranks, so their sum is limited instead.
constexpr std::size_t kMostOfOne = 8 << 10;
constexpr std::size_t kMostOfAll = 64 << 10;
constexpr std::size_t kLeast = 256;
// Over shared memory, MPIs let messages beyond some 4 KiB wait for their receive, which is slow.
constexpr std::size_t kEagerPiece = 3968;

constexpr int kMostPieces = 1 + (kMostOfOne + 64) / kEagerPiece;
static_assert(1 + kMostPieces <= kMostTogether);

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

Agreement::Agreement(Link& link)
    : link_(link),
      mostBytes_(
          std::clamp(kMostOfAll / static_cast<std::size_t>(link.size()), kLeast, kMostOfOne)),
      capacity_(static_cast<std::size_t>(link.size()) *
                (sizeof(Announcement) + padded(mostBytes_) + kEagerPiece)),
      gathered_(new std::byte[capacity_]),
      offset_(static_cast<std::size_t>(link.size())) {
  ends_.reserve(static_cast<std::size_t>(link.size()));
  if (link.size() == 2) offset_[static_cast<std::size_t>(1 - link.rank())] = capacity_ / 2;
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

void Agreement::announce(const ShapeOnWire& shape, std::span<const std::byte> payload, Wait& wait) {
  link_.beginCall();
  const Announcement own{shape, link_.rank(), static_cast<std::uint32_t>(payload.size())};
  std::memcpy(gathered_.get(), &own, sizeof(own));
  if (!payload.empty()) {
    std::memcpy(gathered_.get() + sizeof(own), payload.data(), payload.size());
  }
  wait.as(Wait::Kind::agreement);
  const std::size_t bytes = sizeof(own) + padded(payload.size());
  if (link_.size() == 2) {
    exchangePair(bytes, wait);
  } else {
    exchangeAll(bytes, wait);
  }
  wait.as(Wait::Kind::data).came();
}

void Agreement::meet(const Shape& shape, std::span<const std::byte> payload, Wait& wait) {
  const int n = link_.size();
  const ShapeOnWire own(shape);
  announce(own, payload, wait);
  bool agreed = true;
  for (int r = 0; r < n; ++r) agreed = agreed && at(r).shape == own;
  if (agreed) return;
  std::vector<ShapeOnWire> all(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) all[static_cast<std::size_t>(r)] = at(r).shape;
  checkSame<ShapeOnWire>(wait.op(), all, link_.rank(), [&] {
    const CallName name(wait.name());
    announce(ShapeOnWire(kNamesCall), std::as_bytes(std::span(&name, 1)), wait.forNames());
    std::vector<CallName> names(all.size());
    for (int r = 0; r < n; ++r) {
      const auto nameBytes = this->payload(r);
      std::memcpy(&names[static_cast<std::size_t>(r)], nameBytes.data(),
                  std::min(nameBytes.size(), sizeof(name)));
    }
    return names;
  });
}

void Agreement::exchangePair(std::size_t own, Wait& wait) {
  const int peer = 1 - link_.rank();
  std::byte* const theirs = gathered_.get() + capacity_ / 2;
  // The receive, then the sends.
  RequestHandle requests[1 + kMostPieces];
  int count = 1;
  link_.irecv(theirs, kEagerPiece, peer, kAgreeTag, &requests[0]);
  for (std::size_t done = 0; done < own; done += kEagerPiece) {
    link_.isend(gathered_.get() + done, std::min(kEagerPiece, own - done), peer, kAgreeTag,
                &requests[count++]);
  }
  wait.on(peer);
  try {
    while (!link_.testAll(requests, count)) wait.pause();
    count = 0;
    const std::size_t length = sizeof(Announcement) + padded(at(peer).bytes);
    for (std::size_t done = kEagerPiece; done < length; done += kEagerPiece) {
      link_.irecv(theirs + done, std::min(kEagerPiece, length - done), peer, kAgreeTag,
                  &requests[0]);
      count = 1;
      while (!link_.test(&requests[0])) wait.pause();
      count = 0;
    }
  } catch (...) {
    // Sends that are given up may use this object's memory as long as it lives.
    std::vector<RequestHandle> receives(requests, requests + std::min(count, 1));
    std::vector<RequestHandle> sends(requests + std::min(count, 1), requests + count);
    link_.giveUp(receives, sends);
    throw;
  }
}

void Agreement::exchangeAll(std::size_t own, Wait& wait) {
  const int n = link_.size();
  ends_.clear();
  index(0, own);
  for (int distance = 1; distance < n; distance *= 2) {
    const int to = (link_.rank() - distance + n) % n;
    const int from = (link_.rank() + distance) % n;
    const auto count = static_cast<std::size_t>(std::min(distance, n - distance));
    const std::size_t have = ends_.back();
    RequestHandle incoming;
    RequestHandle outgoing;
    MessageStatus status;
    link_.irecv(gathered_.get() + have, capacity_ - have, from, kAgreeTag, &incoming);
    link_.isend(gathered_.get(), ends_[count - 1], to, kAgreeTag, &outgoing);
    wait.on(from).came();
    try {
      link_.await(&incoming, wait, &status);
      wait.on(to);
      while (!link_.test(&outgoing)) wait.pause();
    } catch (...) {
      std::vector<RequestHandle> none;
      std::vector<RequestHandle> sends{outgoing};
      link_.giveUp(none, sends);
      throw;
    }
    index(have, have + status.bytes);
  }
}

std::span<const std::byte> Agreement::payload(int rank) const {
  const Announcement& announcement = at(rank);
  return {reinterpret_cast<const std::byte*>(&announcement + 1), announcement.bytes};
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
  // All have one length, so MPI need not report lengths.
  auto& mine = all[static_cast<std::size_t>(link_.rank())];
  mine.assign(own.begin(), own.end());
  mine.resize(most);
  for (int i = 1; i < link_.size(); ++i) {
    batch.send(mine.data(), most, (link_.rank() - i + link_.size()) % link_.size(), kMoveTag);
  }
  batch.wait(wait);
  return all;
}

}  // namespace gradlink::messages
