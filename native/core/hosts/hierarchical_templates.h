// Error handling of Hierarchical's calls. Private to hierarchical*.cc.
#pragma once

#include <new>

#include "core/error.h"
#include "core/hosts/hierarchical.h"
#include "core/hosts/rank_names.h"

namespace gradlink {

template <class Body>
auto Hierarchical::guarded(const char* op, Body body) {
  if (closed_)
    throw Error(ErrorCode::closed, std::string(op) + ": the communicator is closed").withOp(op);
  try {
    return body();
  } catch (const Error& error) {
    if (!error.usable) fail(error);
    throw;
  } catch (const std::bad_alloc&) {
    Error error(ErrorCode::outOfMemory, std::string(op) + ": no memory for the data in transfer");
    fail(error.withOp(op).withRank(rank()));
    throw error;
  }
}

template <class Body>
auto Hierarchical::onNode(const char* op, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    const std::vector<int>& members = map_.ownMembers();
    Error whole = toWhole(error, op, static_cast<int>(members.size()),
                          [&](int local) { return members[static_cast<std::size_t>(local)]; });
    whole.usable = false;  // other hosts wait for this part
    throw whole;
  }
}

template <class Body>
auto Hierarchical::onLeaders(const char* op, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    // If the world has ended, its error explains this one.
    onWorld(op, [&] { world_->check(op); });
    Error whole = toWhole(error, op, map_.nodes(), [&](int node) { return map_.leaderOf(node); });
    whole.usable = false;  // the host's other ranks wait for this part
    throw whole;
  }
}

template <class Body>
auto Hierarchical::onWorld(const char* op, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    throw toWhole(error, op, size(), [](int rank) { return rank; });
  }
}

}  // namespace gradlink
