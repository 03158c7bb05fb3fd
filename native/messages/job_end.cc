#include "messages/job_end.h"

#include <cstdlib>
#include <limits>
#include <string>

#include "core/error.h"
#include "messages/join.h"

namespace gradlink::messages {
namespace {

/// This process is a server that has met the others at its end, or must not.
std::atomic<bool> serves{false};

void meetAll(const std::atomic<bool>* cancelled) {
  JoinOptions options;
  options.name = "the end of the job";
  options.timeoutMs = std::numeric_limits<double>::infinity();
  options.cancelled = cancelled;
  join(options);
}

}  // namespace

void meetAtExit() {
  static const bool registered = [] {
    const char* const given = std::getenv("GRADLINK_NUM_SERVERS");
    const std::string servers = given == nullptr ? "" : given;
    if (servers.empty() || servers == "0") return false;
    // Handlers run in reverse order: this one before MPI's finalization, registered at its start.
    return on_exit(
               [](int status, void*) {
                 // Ranks that wait for a failed process learn of its end at once.
                 if (status != 0 || serves.load()) return;
                 try {
                   meetAll(nullptr);
                 } catch (const Error&) {
                   // The job is ending in another way already.
                 }
               },
               nullptr) == 0;
  }();
  static_cast<void>(registered);
}

void waitForExit(const std::atomic<bool>* cancelled) {
  serves.store(true);
  meetAll(cancelled);
}

}  // namespace gradlink::messages
