// The one exception type of the native core; binding/ turns it into GradlinkError.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace gradlink {

enum class ErrorCode {
  peerLost,            // a rank died, was killed or left
  timeout,             // a rank did not come within the deadline
  mismatch,            // ranks called different operations, counts, types, ops or roots
  aborted,             // somebody called abort(), here or on a peer
  closed,              // used after close()
  unsupported,         // this backend cannot do it
  backendUnavailable,  // a library or device is missing
  invalidArgument,     // misuse found in native code
  outOfMemory,
  system,  // a system call failed; the message carries errno's text
};

const char* nameOf(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code(code) {}

  ErrorCode code;
  /// The rank to blame, or -1.
  int rank = -1;
  /// In a mismatch: the first rank whose call differs from this rank's, or -1.
  int other = -1;
  /// The operation that failed, "allReduce" for example, or empty.
  std::string op;
  /// Whether the communicator stays usable. Lost peers and aborts end it; misuse does not.
  bool usable = false;

  Error& withRank(int value) {
    rank = value;
    return *this;
  }
  Error& withOp(std::string value) {
    op = std::move(value);
    return *this;
  }
  Error& stillUsable() {
    usable = true;
    return *this;
  }
};

/// "op: text"; the communicator stays usable.
Error harmless(ErrorCode code, std::string_view op, std::string_view text);

/// harmless() with invalidArgument: the caller's mistake, nothing was sent.
Error misuse(std::string_view op, std::string_view text);

Error unsupported(std::string_view op, std::string_view text);

/// ErrorCode::system, ending in errno's text: "cannot map the segment: Cannot allocate memory". If
/// files cannot be opened it also names the limit and the remedy.
Error systemError(const std::string& what, int errnoValue);

bool noMoreFiles(int errnoValue);

}  // namespace gradlink
