// Groups: what the calling thread collects until the outermost end.
#pragma once

#include <memory>

#include "nccl/comm.h"

namespace gradlink::fake {

/// To tests: how many groups with work this process has ended, and collectives of a kind that rank
/// 0 of a communicator has called.
std::size_t groupsSoFar();
std::size_t collectivesSoFar(Collective kind);

void beginGroup();
/// Until the thread that launches in the background is gone: nothing of it is left when the last
/// communicator goes.
void settleLaunches();
/// Launches what was collected: at once, or in the background where handles are non-blocking.
abi::Result endGroup();
/// Estimates instead of launching, unless handles are non-blocking: those are launched as ever, and
/// nothing is estimated.
abi::Result simulateGroup(abi::Simulation& simulation);

/// Put into the group; a call outside of one is a group of its own.
abi::Result addJoin(std::shared_ptr<Comm> comm);
abi::Result addCollective(abi::CommHandle comm, cuda::StreamHandle stream, Step step,
                          const void* in, void* out);
/// A window of every rank, opened at the end of the group.
abi::Result addWindow(abi::CommHandle comm, const Comm::Window& window);
abi::Result addMessage(abi::CommHandle comm, cuda::StreamHandle stream, int type,
                       const Message& message);

}  // namespace gradlink::fake
