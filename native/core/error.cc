#include "core/error.h"

#include <system_error>

namespace gradlink {

namespace {

Error refusal(ErrorCode code, std::string_view op, std::string_view text) {
  std::string message(op);
  message.append(": ").append(text);
  return Error(code, message).withOp(std::string(op)).stillUsable();
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

Error misuse(std::string_view op, std::string_view text) {
  return refusal(ErrorCode::invalidArgument, op, text);
}

Error unsupported(std::string_view op, std::string_view text) {
  return refusal(ErrorCode::unsupported, op, text);
}

Error systemError(const std::string& what, int errnoValue) {
  // generic_category and not strerror: the latter's buffer is shared between threads.
  return Error(ErrorCode::system, what + ": " + std::generic_category().message(errnoValue));
}

}  // namespace gradlink
