// Ranks of an MPI job that share a host reduce there first: one rank of each host uses MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/communicator.h"
#include "messages/join.h"

namespace gradlink::messages {

/// Joins the ranks of one host with the host's engine, by job and name.
using HostJoin = std::function<std::unique_ptr<Communicator>(
    const std::string& job, const std::string& name, int rank, int size, double timeoutMs)>;

/// As join(), over the hosts' own engines (hierarchical.h); or join()'s result with one rank a
/// host.
std::unique_ptr<Communicator> joinOverHosts(const JoinOptions& options, const HostJoin& joinHost);

}  // namespace gradlink::messages
