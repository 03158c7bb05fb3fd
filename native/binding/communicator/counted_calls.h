// A collective with counts as it comes from JavaScript, and what it gives.
#pragma once

#include <memory>
#include <vector>

#include "binding/communicator/calls.h"
#include "core/counted.h"

namespace gradlink::binding {

class CountedOperation {
 public:
  /// Reads (kind, dtype, reduceOp, root, input, sent, expected, output, timeoutMs). Input and
  /// output are lists, one entry for each held rank; null in output: the place is made.
  CountedOperation(const Napi::CallbackInfo&, const Side&, Kept* kept);
  CountedOperation(const CountedOperation&) = delete;
  CountedOperation& operator=(const CountedOperation&) = delete;

  void run(Communicator&);
  /// { counts: what came from each rank, for each held rank in a row, made: ArrayBuffers }
  Napi::Value result(Napi::Env) const;

 private:
  void* makePlace(std::size_t part, std::size_t elements);

  CountedCall call_;
  CallOptions options_;
  bool onHost_ = true;
  std::vector<std::shared_ptr<void>> made_;
};

}  // namespace gradlink::binding
