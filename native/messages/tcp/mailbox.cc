#include "messages/tcp/mailbox.h"

#include <algorithm>
#include <utility>

namespace gradlink::messages::tcp {

void Mailbox::name(std::vector<int> ranks, int self) {
  ranks_ = std::move(ranks);
  for (std::size_t r = 0; r < ranks_.size(); ++r) rankOf_[ranks_[r]] = static_cast<int>(r);
  rank_ = rankOf(self);
}

int Mailbox::rankOf(int jobRank) const {
  const auto found = rankOf_.find(jobRank);
  return found == rankOf_.end() ? -1 : found->second;
}

Request* Mailbox::takePosted(int peer, int tag) {
  const int source = rankOf(peer);
  const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const Request* each) {
    return (each->source == kAnySourceOfShim || each->source == source) &&
           (each->tag == kAnyTagOfShim || each->tag == tag);
  });
  if (found == posted_.end()) return nullptr;
  Request* const request = *found;
  posted_.erase(found);
  request->status.source = source;
  request->status.tag = tag;
  return request;
}

void Mailbox::post(Request& request) { posted_.push_back(&request); }

void Mailbox::unpost(const Request& request) {
  posted_.remove_if([&](const Request* each) { return each == &request; });
}

std::deque<Unexpected>::iterator Mailbox::find(int source, int tag) {
  return std::find_if(unexpected_.begin(), unexpected_.end(), [&](const Unexpected& each) {
    return (source == kAnySourceOfShim || rankOf(each.peer) == source) &&
           (tag == kAnyTagOfShim || each.tag == tag);
  });
}

Unexpected Mailbox::take(std::deque<Unexpected>::iterator at) {
  Unexpected taken = std::move(*at);
  unexpected_.erase(at);
  taken.source = rankOf(taken.peer);
  return taken;
}

}  // namespace gradlink::messages::tcp
