// Memory and copies.
#include <cstring>
#include <utility>

#include "cuda/capture.h"
#include "cuda/cost.h"
#include "cuda/exports.h"
#include "cuda/faults.h"
#include "cuda/host_link.h"
#include "cuda/memory.h"

namespace gradlink::fake {
namespace {

/// Both ends, checked again when the copy runs: memory may have been freed since.
Work copyWork(Address to, Address from, std::size_t bytes, double seconds, Ordinal fault,
              std::shared_ptr<const HostCopy> overHostLink) {
  return [=](Execution& execution) -> Status {
    if (fault == Ordinal::fails) return kIllegalAddress;
    if (fault == Ordinal::hangs) Mark().wait();
    const Memory& memory = Memory::get();
    if (!memory.placeOf(to, bytes) || !memory.placeOf(from, bytes)) return kIllegalAddress;
    std::memmove(pointer(to), pointer(from), bytes);
    if (fault == Ordinal::spoils) static_cast<unsigned char*>(pointer(to))[bytes / 2] ^= 1;
    execution.now += seconds * (overHostLink ? overHostLink->stretch(false) : 1);
    return kOk;
  };
}

Status copy(Address to, Address from, std::size_t bytes, StreamHandle handle) {
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!stream) return kInvalidHandle;
  if (bytes == 0) return kOk;
  const auto toPlace = Memory::get().placeOf(to, bytes);
  const auto fromPlace = Memory::get().placeOf(from, bytes);
  if (!toPlace || !fromPlace || to == 0 || from == 0) return kInvalidValue;
  // The driver goes through a buffer of its own, and returns when it has no more need of the
  // caller's: a graph could not.
  const bool pageable = *toPlace == kPageable || *fromPlace == kPageable;
  if (pageable && stream->captured().capture) return kCaptureUnsupported;
  const double seconds = copySeconds(*fromPlace, *toPlace, bytes);
  // A graph holds its copies before and after they run.
  const auto overHostLink =
      stream->captured().capture ? nullptr : HostCopy::queue(*fromPlace, *toPlace);
  const Status status =
      submit(*stream, copyWork(to, from, bytes, seconds, nextFault(Counted::copies), overHostLink));
  if (status != kOk || !pageable) return status;
  stream->end()->wait();
  return stream->context().status();
}

}  // namespace

FAKE_IN_CONTEXT(cuMemGetInfo_v2, (std::size_t * free, std::size_t* total)) {
  *free = Memory::get().freeBytes(context.device());
  *total = Machine::get().gpu(context.device()).memoryBytes;
  return kOk;
}

FAKE_IN_CONTEXT(cuMemAlloc_v2, (Address * address, std::size_t bytes)) {
  if (const Status status = checkUnsafeCall()) return status;
  if (nextFault(Counted::allocations) == Ordinal::fails) return kOutOfMemory;
  return Memory::get().allocate(context.device(), bytes, address);
}

FAKE_DRIVER(cuMemFree_v2, (Address address)) {
  if (!currentContext()) return kInvalidContext;
  if (address == 0) return kOk;
  if (const Status status = checkUnsafeCall()) return status;
  const auto place = Memory::get().placeOf(address, 1);
  if (!place || *place < 0) return kInvalidValue;
  waitForUsers(*place);
  const Status status = Memory::get().release(true, address);
  // A broken context's memory is gone all the same, so that the leak report names what nobody
  // freed.
  return status ? status : currentContext()->status();
}

FAKE_IN_CONTEXT(cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned flags)) {
  if (flags > 7) return kInvalidValue;
  if (const Status status = checkUnsafeCall()) return status;
  if (fault("pinned-oom")) return kOutOfMemory;
  Address address = 0;
  const Status status = Memory::get().allocate(kHost, bytes, &address);
  *memory = pointer(address);
  return status;
}

FAKE_DRIVER(cuMemFreeHost, (void* memory)) {
  if (!currentContext()) return kInvalidContext;
  if (const Status status = checkUnsafeCall()) return status;
  waitForUsers(kHost);
  const Status status = Memory::get().release(false, cuda::addressOf(memory));
  return status ? status : currentContext()->status();
}

FAKE_IN_CONTEXT(cuMemcpyAsync, (Address to, Address from, std::size_t bytes, StreamHandle stream)) {
  return copy(to, from, bytes, stream);
}

FAKE_IN_CONTEXT(cuMemcpyPeerAsync,
                (Address to, ContextHandle toContext, Address from, ContextHandle fromContext,
                 std::size_t bytes, StreamHandle stream)) {
  Context* const toPeer = contextOf(toContext);
  Context* const fromPeer = contextOf(fromContext);
  if (!toPeer || !fromPeer) return kInvalidContext;
  if (Memory::get().placeOf(to, bytes) != toPeer->device() ||
      Memory::get().placeOf(from, bytes) != fromPeer->device()) {
    return kInvalidValue;
  }
  const Status status = copy(to, from, bytes, stream);
  // The driver stages such a copy piece by piece, and comes back when it has queued the last: what
  // runs before in the stream holds the caller up.
  constexpr std::size_t kOnePiece = 64 << 10;
  const bool direct = toPeer->reaches(fromPeer->device()) || fromPeer->reaches(toPeer->device());
  if (status != kOk || direct || bytes <= kOnePiece) return status;
  const std::shared_ptr<Stream> queue = streamOf(stream);
  if (queue->captured().capture) return status;
  queue->end()->wait();
  return queue->context().status();
}

FAKE_IN_CONTEXT(cuMemsetD8Async,
                (Address to, unsigned char value, std::size_t bytes, StreamHandle handle)) {
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!stream) return kInvalidHandle;
  if (bytes == 0) return kOk;
  const auto place = Memory::get().placeOf(to, bytes);
  if (!place || *place == kPageable) return kInvalidValue;
  return submit(*stream, [=](Execution& execution) -> Status {
    Traffic traffic(execution.context);
    if (!traffic.write(pointer(to), bytes)) return traffic.status();
    std::memset(pointer(to), value, bytes);
    execution.now += traffic.seconds();
    return kOk;
  });
}

}  // namespace gradlink::fake
