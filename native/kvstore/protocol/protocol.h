// The protocol between workers and servers of a distributed store, over a Wire.
//
// A key is cut into shards, each on one server. A shard's elements are sent in pieces of at most
// kPieceBytes, so copying, sending, merging and answering overlap. Ranks of the wire: the workers,
// then the servers. Numbers have the host's byte order: a job has one architecture.
//
// Rounds: a worker counts its pushes of each shard from 1. In a synchronous store a piece's round n
// closes when every participating worker has pushed it n times; the sum is in worker order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/dtype.h"

namespace gradlink::dist {

inline constexpr std::size_t kPieceBytes = 256 << 10;

enum class MessageType : std::uint8_t {
  // ---- worker to server
  define,           // Header::count elements; payload: the key's name. Same order on all workers
  init,             // payload: piece of worker 0's value
  push,             // payload: piece in `encoding`
  pull,             // answered with `value` for each piece once its round `round` has closed
  pullRows,         // payload: ShardRuns; as pull, for the pieces with some of them
  setOptimizer,     // payload: the spec; empty: none. Worker 0's counts; others wait
  setLearningRate,  // payload: one float64
  setCompression,   // payload: encoded type and threshold
  saveStates,       // answered with `states`
  loadStates,       // payload: states of this server's shards
  barrier,          // answered when every participating worker has sent it
  command,          // payload: the user's text; `request` in the answer
  deadNodes,        // answered with the number of lost ranks, a float64
  report,           // answered with the server's counters as JSON text
  leave,            // rounds no longer wait for this worker
  // ---- server to worker
  value,   // payload: piece of the stored value (`release` it soon: the server waits)
  done,    // the request is done; its payload depends on the request
  states,  // payload: encoded states of all of this server's shards
  failed,  // payload: the message; `code` is the ErrorCode and `blame` the rank, -1 for none.
           // request 0: the store has ended
};

enum class Encoding : std::uint8_t {
  plain = 0,   // elements of the key's type
  twoBit = 1,  // native/kvstore/base/compression.h
  oneBit = 2,
  float16 = 3,  // float32 keys sent as halves
  bfloat16 = 4,
  rows = 5,       // some rows: protocol/piece_rows.h
  wider = 6,      // keys of halves: the sum of several devices' halves, as float32
  widerRows = 7,  // the same for some rows
};

struct Header {
  MessageType type;
  Encoding encoding = Encoding::plain;
  DType dtype = DType::float32;
  std::uint8_t flags = 0;
  std::uint32_t shard = 0;
  /// The piece of the shard: elements [piece * pieceElements(dtype), ...).
  std::uint32_t piece = 0;
  std::int32_t code = 0;
  std::int32_t blame = -1;
  /// Elements: of the shard (define), else of the piece.
  std::uint64_t count = 0;
  /// push: this worker's count; pull: rounds that must have closed; define: the shard's offset.
  std::uint64_t round = 0;
  /// The worker's number of a request, repeated by the answer. define: elements of a row of the
  /// key.
  std::uint64_t request = 0;
};
static_assert(sizeof(Header) == 48);

/// flags of a push: answer each piece with `value` once its round has closed.
inline constexpr std::uint8_t kWantsValue = 1;
/// flags of a push: the payload is the user's array, whose caller waits for the release. The server
/// reads it at once, and copies it if the round does not close with it.
inline constexpr std::uint8_t kLent = 4;
/// flags of saveStates: include the optimizer.
inline constexpr std::uint8_t kDumpOptimizer = 1;
/// flags of loadStates: worker 0 has failed; payload and `code` are the reason, for the waiting
/// workers.
inline constexpr std::uint8_t kWithdrawn = 2;

/// Payload of setCompression, for later pushes of float32 keys.
struct CompressionTerms {
  std::uint32_t encoding;
  float threshold;
};

/// A multiple of 32, so a piece of compressed codes is whole words.
constexpr std::size_t pieceElements(DType dtype) { return kPieceBytes / sizeOf(dtype); }

}  // namespace gradlink::dist
