// The parts of calls besides a shape and buffers, read from JavaScript.
#pragma once

#include <memory>
#include <vector>

#include "binding/communicator/calls.h"
#include "core/counted.h"

namespace gradlink::binding {

struct CallParts {
  /// Reads what the shape's kind needs from the arguments' `more` and buffers.
  CallParts(const Shape&, const GivenArguments&);
  CallParts(const CallParts&) = delete;
  CallParts& operator=(const CallParts&) = delete;

  Napi::Value result(Napi::Env, const Shape&) const;

  std::vector<Neighborhood> neighborhoods;
  std::vector<NeighborGather> gathers;
  std::vector<Gossip> pairs;
  std::vector<Message> messages;
  Counted counted;

 private:
  void readNeighborhoods(const GivenArguments&);
  void readGathers(const Shape&, const GivenArguments&);
  void readPairs(const Shape&, const GivenArguments&);
  void readMessages(const GivenArguments&);
  void readCounted(const Shape&, const GivenArguments&);
  void* makePlace(const Shape&, bool onHost, std::size_t part, std::size_t elements);

  // For each of `gathers`.
  std::vector<std::vector<NeighborBlock>> sources_;
  std::vector<std::vector<int>> destinations_;
  /// For each part of `counted`.
  std::vector<std::shared_ptr<void>> made_;
};

/// Throws if ranks in host memory, or GPUs, do not support the type.
void checkDType(Napi::Env, DType, bool onHost);
Napi::Array heldListOf(const Napi::Value&, const char* name, std::size_t length);

}  // namespace gradlink::binding
