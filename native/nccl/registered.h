// The registered memory of a communicator and its release. Only retire() is thread-safe: the rest
// needs the mutex of the communicator's calls.
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

/// One rank's memory and the library's handle; at most one of the two handles is not null.
struct RegisteredPiece {
  std::size_t member;
  Memory memory;
  void* local = nullptr;
  abi::WindowHandle window = nullptr;

  bool isKnown() const { return local != nullptr || window != nullptr; }
};

/// Offsets of a call's arrays in registered memory, if they must be equal on all ranks; else 0.
struct RegisteredPlaces {
  std::uint64_t in = 0;
  std::uint64_t out = 0;

  bool operator==(const RegisteredPlaces&) const = default;
};

/// The error text for different places of two ranks.
std::string elsewhereText(int rank, int other);

class RegisteredPieces {
 public:
  explicit RegisteredPieces(std::size_t members) : known_(members) {}

  /// The number of the next allocRegistered, counted alike on all ranks.
  std::uint64_t nextNumber() { return ++number_; }
  void add(const RegisteredPiece&, std::uint64_t number);
  RegisteredPlaces placesOf(std::size_t member, Kind, const void* in, const void* out) const;

  /// Takes over a list of one; the next sweep() frees it.
  void retire(std::list<RegisteredPiece>& piece) noexcept;
  bool hasRetired() const noexcept;
  /// Deregisters retired memory, unless the communicator's end did; the caller frees it.
  std::list<RegisteredPiece> sweep(const Library&, const Comms&) noexcept;

 private:
  struct Span {
    std::size_t bytes;
    std::uint64_t number;
  };
  std::uint64_t placeOf(std::size_t member, const void* address) const;

  /// For each member, by the first byte.
  std::vector<std::map<const std::byte*, Span>> known_;
  std::uint64_t number_ = 0;

  mutable std::mutex retiring_;
  std::list<RegisteredPiece> retired_;
};

}  // namespace gradlink::nccl
