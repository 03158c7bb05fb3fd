#include "messages/job_end.h"

#include <cstdlib>
#include <limits>
#include <string>

#include "core/error.h"
#include "messages/join.h"

namespace gradlink::messages {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

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
    const std::string servers = variable("GRADLINK_NUM_SERVERS");
    if (servers.empty() || servers == "0" || variable("GRADLINK_ROLE") == "server") return false;
    // Handlers run in the opposite order: this one before the one that finalises MPI, which was
    // registered when MPI was started.
    return on_exit(
               [](int status, void*) {
                 // Who waits for a process that has failed hears of its end at once.
                 if (status != 0) return;
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

void waitForExit(const std::atomic<bool>* cancelled) { meetAll(cancelled); }

}  // namespace gradlink::messages
