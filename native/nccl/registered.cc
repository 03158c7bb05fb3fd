#include "nccl/registered.h"

namespace gradlink::nccl {
namespace {

/// Longer than any memory, so offsets in different registrations differ.
constexpr int kPlaceBits = 44;

}  // namespace

std::string elsewhereText(int rank, int other) {
  return "all ranks must use registered memory at the same offset of one allocRegistered, but "
         "ranks " +
         std::to_string(rank) + " and " + std::to_string(other) +
         " use different ones: use the same slice on every rank, or buffers of "
         "DeviceBuffer.alloc";
}

void RegisteredPieces::add(const RegisteredPiece& piece, std::uint64_t number) {
  if (!piece.isKnown()) return;
  const auto* const begin = static_cast<const std::byte*>(piece.memory.data());
  known_[piece.member][begin] = {piece.memory.bytes(), number};
}

// The library accesses other ranks' memory by its own rank's offsets: inputs of sums, and outputs.
// Buffers that only their own rank accesses must be registered on all ranks or none, at any offset:
// in place, it is another block on each.
RegisteredPlaces RegisteredPieces::placesOf(std::size_t member, Kind kind, const void* in,
                                            const void* out) const {
  const auto whether = [](std::uint64_t place) -> std::uint64_t { return place != 0 ? 1 : 0; };
  switch (kind) {
    case Kind::allReduce:
      return {placeOf(member, in), placeOf(member, out)};
    case Kind::reduceScatter:
      return {placeOf(member, in), whether(placeOf(member, out))};
    case Kind::allGather:
    case Kind::allToAll:
      return {whether(placeOf(member, in)), placeOf(member, out)};
    default:
      return {};
  }
}

std::uint64_t RegisteredPieces::placeOf(std::size_t member, const void* address) const {
  const auto& known = known_[member];
  const auto* const at = static_cast<const std::byte*>(address);
  auto behind = known.upper_bound(at);
  if (behind == known.begin()) return 0;
  const auto& [begin, span] = *--behind;
  const auto offset = static_cast<std::size_t>(at - begin);
  return offset < span.bytes ? (span.number << kPlaceBits) + offset : 0;
}

void RegisteredPieces::retire(std::list<RegisteredPiece>& piece) noexcept {
  const std::lock_guard lock(retiring_);
  retired_.splice(retired_.end(), piece);
}

bool RegisteredPieces::hasRetired() const noexcept {
  const std::lock_guard lock(retiring_);
  return !retired_.empty();
}

std::list<RegisteredPiece> RegisteredPieces::sweep(const Library& library,
                                                   const Comms& comms) noexcept {
  std::list<RegisteredPiece> taken;
  {
    const std::lock_guard lock(retiring_);
    taken.swap(retired_);
  }
  for (const RegisteredPiece& piece : taken) {
    known_[piece.member].erase(static_cast<const std::byte*>(piece.memory.data()));
    if (comms.members().empty()) continue;
    const Comms::Member& member = *comms.members()[piece.member];
    if (member.handle == nullptr || !piece.isKnown()) continue;
    try {
      member.device.makeCurrent();
    } catch (const Error&) {
      // A broken context: the library's own part can still end.
    }
    if (piece.local != nullptr) library.commDeregister(member.handle, piece.local);
    if (piece.window != nullptr) library.commWindowDeregister(member.handle, piece.window);
  }
  return taken;
}

}  // namespace gradlink::nccl
