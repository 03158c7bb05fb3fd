#include "core/error.h"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

namespace gradlink {

namespace {

/// Names the exhausted limit of open files and its remedy; empty for other errors.
std::string openFilesText(int errnoValue) {
  if (errnoValue == ENFILE)
    return "; the whole system has reached its limit of open files, fs.file-max";
  if (errnoValue != EMFILE) return {};
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return "; this process has reached its limit of open files, " + std::to_string(limit.rlim_cur) +
         ": raise the limit (ulimit -n), or close communicators and stores that are done";
}

}  // namespace

const char* nameOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::peerLost:
      return "ERR_PEER_LOST";
    case ErrorCode::timeout:
      return "ERR_TIMEOUT";
    case ErrorCode::mismatch:
      return "ERR_MISMATCH";
    case ErrorCode::aborted:
      return "ERR_ABORTED";
    case ErrorCode::closed:
      return "ERR_CLOSED";
    case ErrorCode::unsupported:
      return "ERR_UNSUPPORTED";
    case ErrorCode::backendUnavailable:
      return "ERR_BACKEND_UNAVAILABLE";
    case ErrorCode::invalidArgument:
      return "ERR_INVALID_ARG_VALUE";
    case ErrorCode::outOfMemory:
      return "ERR_OUT_OF_MEMORY";
    case ErrorCode::system:
      return "ERR_SYSTEM";
  }
  return "ERR_UNKNOWN";
}

Error harmless(ErrorCode code, std::string_view op, std::string_view text) {
  std::string message(op);
  message.append(": ").append(text);
  return Error(code, message).withOp(std::string(op)).stillUsable();
}

Error misuse(std::string_view op, std::string_view text) {
  return harmless(ErrorCode::invalidArgument, op, text);
}

Error unsupported(std::string_view op, std::string_view text) {
  return harmless(ErrorCode::unsupported, op, text);
}

Error systemError(const std::string& what, int errnoValue) {
  // Not strerror(): its buffer is shared between threads.
  return Error(ErrorCode::system, what + ": " + std::generic_category().message(errnoValue) +
                                      openFilesText(errnoValue));
}

bool noMoreFiles(int errnoValue) { return errnoValue == EMFILE || errnoValue == ENFILE; }

}  // namespace gradlink
