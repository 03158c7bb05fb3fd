// The one exception type of the native core. binding/ turns it into the JavaScript class
// GradlinkError.
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

/// "ERR_PEER_LOST" and so on: the stable names users see.
const char* nameOf(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code(code) {}

  ErrorCode code;
  /// The rank that is to blame; -1 where there is none.
  int rank = -1;
  /// Of a mismatch: the first rank whose call differs from this rank's own; -1 where it is not
  /// known.
  int other = -1;
  /// The operation that failed, "allReduce" for example; empty where there is none.
  std::string op;
  /// Whether the communicator can still be used afterwards. Lost peers and aborts poison it; misuse
  /// does not.
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

/// "op: text" of `op`, an error that leaves the communicator usable.
Error harmless(ErrorCode code, std::string_view op, std::string_view text);

/// The same for a call that its caller got wrong: nothing was sent.
Error misuse(std::string_view op, std::string_view text);

/// The same for a call that this backend or this machine cannot do.
Error unsupported(std::string_view op, std::string_view text);

/// An Error of code `system` that ends in errno's text, for example "cannot map the segment: Cannot
/// allocate memory".
/// Where no more files can be opened it also names the limit, and what to do.
Error systemError(const std::string& what, int errnoValue);

/// Whether errno says that no more files can be opened, by this process or at all.
bool noMoreFiles(int errnoValue);

}  // namespace gradlink
