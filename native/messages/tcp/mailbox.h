// Matches messages and receives by communicator, source and tag, in the order of arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "messages/shim.h"

namespace gradlink::messages::tcp {

struct Request {
  bool receives = false;
  bool done = false;
  /// 0, or a number of Engine::numberOf().
  int error = 0;
  MessageStatus status;
  /// The other side's rank in the job; -1: any.
  int peer = -1;
  /// Rank in the communicator, or kAnySourceOfShim.
  int source = kAnySourceOfShim;
  int tag = kAnyTagOfShim;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  /// The capacity of a receive, the length of a send.
  std::size_t bytes = 0;
  /// Its number in frames; 0: none.
  std::uint64_t id = 0;
  std::uint64_t context = 0;
};

/// A message, or the offer of one, without a matching receive yet.
struct Unexpected {
  int source = 0;
  int tag = 0;
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[]> data;
  bool offered = false;
  /// The sender's rank in the job, and its request.
  int peer = 0;
  std::uint64_t id = 0;
};

class Mailbox {
 public:
  /// Sets its members, as ranks of the job. Messages may come before.
  void name(std::vector<int> ranks, int self);
  bool known() const { return !ranks_.empty(); }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  int jobRank(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& jobRanks() const { return ranks_; }
  /// -1: not a member.
  int rankOf(int jobRank) const;

  /// Removes the receive that waits for a message of this source; null: none.
  Request* takePosted(int peer, int tag);
  void post(Request&);
  void unpost(const Request&);
  void keep(Unexpected unexpected) { unexpected_.push_back(std::move(unexpected)); }
  /// The first match, or end().
  std::deque<Unexpected>::iterator find(int source, int tag);
  std::deque<Unexpected>::iterator none() { return unexpected_.end(); }
  Unexpected take(std::deque<Unexpected>::iterator);

  /// Communicators made from this one, counted alike by all members.
  std::unordered_map<std::uint64_t, std::uint64_t> made;

 private:
  int rank_ = 0;
  std::vector<int> ranks_;
  std::unordered_map<int, int> rankOf_;
  std::list<Request*> posted_;
  std::deque<Unexpected> unexpected_;
};

}  // namespace gradlink::messages::tcp
