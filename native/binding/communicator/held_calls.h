// What ranks of GPUs that one process holds do in one call with some of the others.
#pragma once

#include <vector>

#include "binding/buffer_view.h"
#include "binding/communicator/calls.h"
#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "nccl/nccl.h"

namespace gradlink::binding {

/// What `op` is called on; throws ERR_UNSUPPORTED for ranks of another kind.
nccl::NcclCommunicator& gpuRanks(Communicator&, const char* op);

/// One rank's side of neighborAllGather as it comes from JavaScript.
struct GatherArguments {
  Napi::Value data;
  Napi::Value out;
  Napi::Value sources;
  Napi::Value counts;
  Napi::Value destinations;
};

/// Checks lengths, the device and ranks below `size`.
nccl::HeldGather gatherArg(const GatherArguments&, DType, int device, int size);

/// What gatherFromNeighbors and its twin do.
class HeldGatherCall {
 public:
  /// Reads (dtype, [{data, out, sources, counts, destinations}], timeoutMs), one for each held
  /// rank.
  HeldGatherCall(const Napi::CallbackInfo&, const Side&, Kept* kept);
  void operator()(Communicator&) const;

 private:
  DType dtype_;
  std::vector<nccl::HeldGather> held_;
  CallOptions options_;
};

/// What gossip and its twin do.
class HeldGossipCall {
 public:
  /// Reads (dtype, [{held, peer, data, out, selfWeight, pairWeight}], timeoutMs).
  HeldGossipCall(const Napi::CallbackInfo&, const Side&, Kept* kept);
  void operator()(Communicator&) const;

 private:
  DType dtype_;
  std::vector<nccl::HeldGossip> pairs_;
  CallOptions options_;
};

}  // namespace gradlink::binding
