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
  define,           // Header::count elements; payload: the key's name. Every worker, in one order
  init,             // payload: piece of worker 0's value
  push,             // payload: piece, as `encoding` says
  pull,             // answered with `value` for each piece, once `round` rounds of it have closed
  pullRows,         // payload: ShardRuns; answered for the pieces that have some of them, likewise
  setOptimizer,     // payload: the encoded spec; empty: none. From worker 0; the rest wait
  setLearningRate,  // payload: one float64
  setCompression,   // payload: encoded type and threshold
  saveStates,       // answered with `states`
  loadStates,       // payload: states of this server's shards
  barrier,          // answered when every worker that takes part has asked
  command,          // payload: the user's text; `request` in the answer
  deadNodes,        // answered with one float64 in the payload: how many ranks are lost
  report,           // answered with the server's counters as JSON text
  leave,            // from here on rounds no longer wait for this worker
  // ---- server to worker
  value,   // payload: piece of the stored value (`release` it soon: the server waits)
  done,    // the request has been carried out; payload as the request says
  states,  // payload: encoded states of all of this server's shards
  failed,  // payload: the message; `code` is the ErrorCode and `blame` the rank, -1 for none.
           // request 0: the store has ended, for everybody
};

/// How a push's payload is encoded.
enum class Encoding : std::uint8_t {
  plain = 0,   // elements of the key's type
  twoBit = 1,  // native/kvstore/base/compression.h
  oneBit = 2,
  float16 = 3,  // float32 keys sent as halves
  bfloat16 = 4,
  rows = 5,       // of some rows: protocol/piece_rows.h
  wider = 6,      // keys of halves: the sum of several devices' halves, as float32
  widerRows = 7,  // the same of some rows
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
  /// push: its number among this worker's; pull: rounds that must have closed; define: the shard's
  /// offset.
  std::uint64_t round = 0;
  /// The worker's number of a request, repeated by the answer. define, which has no answer:
  /// elements of a row of the key.
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
/// flags of loadStates: worker 0 has failed; the payload is the reason, for the waiting workers.
inline constexpr std::uint8_t kWithdrawn = 2;
/// flags of define: not shard 0 of its key.
inline constexpr std::uint8_t kContinued = 2;

/// Payload of setCompression, for later pushes of float32 keys.
struct CompressionTerms {
  std::uint32_t encoding;
  float threshold;
};

/// A multiple of 32, so a piece of compressed codes is whole words.
constexpr std::size_t pieceElements(DType dtype) { return kPieceBytes / sizeOf(dtype); }

}  // namespace gradlink::dist
