// MPI's tags on a communicator of the engine. Each communicator and each wire has an MPI
// communicator of its own, so that none of them is ever anybody else's.
#pragma once

#include "messages/runtime.h"

namespace gradlink::messages {

// kLeftTag, the last message of a rank, is 1 (runtime.h).
inline constexpr int kTellingTag = 2;  // failures, and who waits
inline constexpr int kAgreeTag = 3;    // what starts every collective
inline constexpr int kMessageTag = 4;  // point to point: envelopes, with short messages in them
inline constexpr int kAnswerTag = 5;   // the receiver of a long message is ready, or is not
inline constexpr int kLongTag = 6;     // a long message
inline constexpr int kMoveTag = 7;     // data of collectives that only move it
inline constexpr int kFrameTag = 8;    // of wires
inline constexpr int kPayloadTag = 9;  // likewise
inline constexpr int kMeetTag = 10;    // on the world: who joins what
/// Data of the stages of one call, which may come in any order: each stage has its own, of so many.
inline constexpr int kStageTags = 256;
inline constexpr int kPartsTag = 1024;
inline constexpr int kResultsTag = kPartsTag + kStageTags;

}  // namespace gradlink::messages
