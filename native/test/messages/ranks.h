// The ranks of the MPI tests' jobs: one program, whose first argument names what it does. A test
// (mpi_jobs.h) starts it with a real mpirun.
#pragma once

#include <functional>
#include <map>

#include "core/wire.h"
#include "messages/join.h"
#include "test/message_support.h"

namespace gradlink::test {

/// Returns "" or what is wrong. Arguments are those after the name.
using RankBody = std::function<std::string(const std::vector<std::string>& arguments)>;

inline std::map<std::string, RankBody>& rankBodies() {
  static std::map<std::string, RankBody> bodies;
  return bodies;
}

/// A body under a name, made known by a static object.
struct Register {
  Register(const std::string& name, RankBody body) { rankBodies()[name] = std::move(body); }
};

inline std::unique_ptr<messages::MpiCommunicator> joinAll(const std::string& name = "test",
                                                          double timeoutMs = 60000) {
  return messages::join({.name = name, .ranks = {}, .timeoutMs = timeoutMs});
}

/// "" when body throws an Error of this code that names this rank and is usable or not, with all of
/// these in its message; else what happened instead.
inline std::string expectError(ErrorCode code, int rank, bool usable,
                               const std::function<void()>& body,
                               std::initializer_list<std::string_view> tokens = {}) {
  const std::optional<Error> error = errorOf(body);
  if (!error) return "threw nothing";
  const std::string what = error->what();
  if (error->code == code && error->rank == rank && error->usable == usable &&
      lacking(what, tokens).empty()) {
    return {};
  }
  return std::string("threw ") + gradlink::nameOf(error->code) + " rank " +
         std::to_string(error->rank) + (error->usable ? " usable" : " not usable") + ": " + what;
}

inline std::string expectError(ErrorCode code, int rank, bool usable,
                               const std::function<void()>& body, std::string_view token) {
  const std::initializer_list<std::string_view> tokens{token};
  return expectError(code, rank, usable, body, tokens);
}

}  // namespace gradlink::test
