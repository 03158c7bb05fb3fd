// Ranks of an MPI job that share a host reduce there first: only one of a host talks MPI for them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/communicator.h"
#include "messages/join.h"

namespace gradlink::messages {

/// Joins ranks of one host with the engine of the host: those that give the same job and name meet.
using HostJoin = std::function<std::unique_ptr<Communicator>(
    const std::string& job, const std::string& name, int rank, int size, double timeoutMs)>;

/// As join(), and then over the hosts' own engines (core/hierarchical.h). With one rank a host that
/// is join()'s communicator itself.
std::unique_ptr<Communicator> joinOverHosts(const JoinOptions& options, const HostJoin& joinHost);

}  // namespace gradlink::messages
