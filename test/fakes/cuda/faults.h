// Faults that hit the N-th call of a kind: "copy=3" breaks the third copy of the process.
#pragma once

#include "support/environment.h"

namespace gradlink::fake {

enum class Counted { allocations, copies, launches };
enum class Ordinal { none, fails, hangs, spoils };

/// Counts a call, and says what becomes of it. Allocations: "oom-at=N" fails. Copies: "copy=N"
/// fails, "stuck-copy=N" never ends, "wrong-copy=N" leaves a wrong byte. Launches: "launch=N" and
/// "stuck-launch=N".
Ordinal nextFault(Counted kind);

}  // namespace gradlink::fake
