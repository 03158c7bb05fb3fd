// What is left of the driver's objects at the end of the process.
#include "support/leaks.h"

#include <cstdlib>

#include "cuda/capture.h"
#include "cuda/context.h"
#include "cuda/memory.h"

namespace gradlink::fake {
namespace {

/// Contexts and modules are the process's: a program keeps them to its end.
__attribute__((destructor)) void reportAtExit() {
  // LeakSanitizer, which looks after this, cannot stand threads that are just about to end;
  // ThreadSanitizer takes one that ended and was not joined for a leak.
  Stream::joinClosed();
  if (!std::getenv("GRADLINK_FAKE_LEAKS")) return;
  const World& world = World::get();
  std::vector<std::string> lines = Memory::get().left();
  const auto count = [&](const char* what, std::size_t left) {
    if (left > 0) lines.push_back("not destroyed: " + std::to_string(left) + " " + what);
  };
  count("streams", world.streams.size());
  count("events", world.events.size());
  count("graphs", world.graphs.size());
  count("instantiated graphs", world.graphExecs.size());
  reportLeaks("cuda", lines);
}

}  // namespace
}  // namespace gradlink::fake
