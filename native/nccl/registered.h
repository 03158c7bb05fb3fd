// Memory that the library knows: which there is, and how it is let go of. Not thread-safe but for
// retire(): the rest wants the mutex of the communicator's calls.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/collective.h"
#include "nccl/comms.h"
#include "nccl/nccl.h"

namespace gradlink::nccl {

/// One rank's memory and what the library gave for it; at most one of the two is not null.
struct RegisteredPiece {
  std::size_t member;
  Memory memory;
  void* local = nullptr;
  abi::WindowHandle window = nullptr;

  bool isKnown() const { return local != nullptr || window != nullptr; }
};

/// Where in registered memory a call's arrays are, as far as that must be the same on all ranks: 0
/// for memory that is not registered, and wherever it does not matter.
struct RegisteredPlaces {
  std::uint64_t in = 0;
  std::uint64_t out = 0;

  bool operator==(const RegisteredPlaces&) const = default;
};

/// What is wrong where two ranks' places differ.
std::string elsewhereText(int rank, int other);

class RegisteredPieces {
 public:
  explicit RegisteredPieces(std::size_t members) : known_(members) {}

  /// Of the next call of allocRegistered: counted on all ranks alike.
  std::uint64_t nextNumber() { return ++number_; }
  void add(const RegisteredPiece&, std::uint64_t number);
  RegisteredPlaces placesOf(std::size_t member, Kind, const void* in, const void* out) const;

  /// Takes over a list of one; it is freed by the next sweep().
  void retire(std::list<RegisteredPiece>& piece) noexcept;
  bool hasRetired() const noexcept;
  /// Deregisters what was retired, for the caller to free; what ended the communicator has
  /// deregistered it.
  std::list<RegisteredPiece> sweep(const Library&, const Comms&) noexcept;

 private:
  struct Span {
    std::size_t bytes;
    std::uint64_t number;
  };
  std::uint64_t placeOf(std::size_t member, const void* address) const;

  /// Of each member, by the first byte.
  std::vector<std::map<const std::byte*, Span>> known_;
  std::uint64_t number_ = 0;

  mutable std::mutex retiring_;
  std::list<RegisteredPiece> retired_;
};

}  // namespace gradlink::nccl
