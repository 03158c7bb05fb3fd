// What the fake driver exports besides the driver's own functions, for the fake NCCL: where memory
// lives, how fast links are, and the simulated time of the stream whose work is running.
//
// Simulated time: every stream has a clock of its own, in seconds. A copy or kernel moves it on by
// what a machine with the configured links would need. An event takes the clock's value; a stream
// that waits for it moves its clock to at least that. So times follow the order of the work alone,
// not the speed of the machine that tests run on.
#pragma once

#include <cstdint>

#include "cuda/driver.h"

extern "C" {

/// The GPU whose memory this is, -1 for page-locked host memory, -2 for any other address.
int gradlinkFakeOwner(const void* address);

/// Bytes a second of one direction between two GPUs, or within one; peer access or not.
double gradlinkFakeLinkRate(int from, int to);

/// Whether memory of `to` is reached directly from `from`.
int gradlinkFakeCanReach(int from, int to);

/// In a function that cuLaunchHostFunc runs: the clock of its stream.
double gradlinkFakeNow();

/// In such a function: moves the clock on to `seconds`, never back. The ranks of a collective
/// exchange their clocks, take the latest, add what the collective takes, and each goes on to
/// there.
void gradlinkFakeAdvanceTo(double seconds);

/// The GPU of a stream; the current context's for the null stream; -1 for a handle that is none.
int gradlinkFakeDeviceOf(gradlink::cuda::StreamHandle stream);

/// Whether the stream is being captured: what is queued then runs with each launch of the graph.
int gradlinkFakeIsCapturing(gradlink::cuda::StreamHandle stream);

/// How often the driver was asked to queue something on a stream, or on any where that is null:
/// work, an event, a wait, a graph.
std::uint64_t gradlinkFakeQueued(gradlink::cuda::StreamHandle stream);

/// The GPU of the calling thread's current context, -1 without one.
int gradlinkFakeCurrentDevice();

/// NCCL of GPU `from` has mapped memory of `to`, where it can be.
void gradlinkFakeMap(int from, int to);

/// The blocks of the latest launch of a kernel.
int gradlinkFakeBlocks();

/// How many threads wait in a free.
int gradlinkFakeFreeing();

/// Queues `function(data)` on the stream; both fakes use it, gradlink itself does not.
gradlink::cuda::Status cuLaunchHostFunc(gradlink::cuda::StreamHandle stream,
                                        void (*function)(void*), void* data);
}
