// How a thread waits for a GPU.
#pragma once

#include <chrono>

namespace gradlink::cuda {

/// How long to pause before the GPU is asked again, after so long a wait; zero: not at all, others
/// may run meanwhile. A driver's own blocking wait is no better: in a virtual machine its interrupt
/// comes half a millisecond late.
std::chrono::nanoseconds pauseAfter(std::chrono::nanoseconds waited);

/// Makes this thread's short sleeps as short as they are asked for; else the kernel adds up to 50 us
/// to each.
void wakePrecisely();

/// Pauses so long, or lets others run.
void pauseFor(std::chrono::nanoseconds);

}  // namespace gradlink::cuda
