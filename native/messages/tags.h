// MPI's tags on a communicator of the engine. Each communicator and wire has an MPI communicator.
#pragma once

#include "messages/runtime.h"

namespace gradlink::messages {

inline constexpr int kControlTag = 2;  // failures and waiting ranks
inline constexpr int kAgreeTag = 3;    // the announcements of collectives
inline constexpr int kMessageTag = 4;  // point to point: envelopes with short messages
inline constexpr int kAnswerTag = 5;   // whether the receiver of a long message is ready
inline constexpr int kLongTag = 6;
inline constexpr int kMoveTag = 7;     // collectives that only move data
inline constexpr int kFrameTag = 8;    // wires
inline constexpr int kPayloadTag = 9;  // wires
inline constexpr int kMeetTag = 10;    // on the world: rendezvous
/// Stages of one call, whose data may come in any order: each has a tag modulo this.
inline constexpr int kStageTags = 256;
inline constexpr int kPartsTag = 1024;
inline constexpr int kResultsTag = kPartsTag + kStageTags;

}  // namespace gradlink::messages
