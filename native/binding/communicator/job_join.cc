#include "binding/communicator/job_join.h"

#include <numeric>
#include <string>
#include <utility>

#include "binding/args.h"
#include "binding/communicator/mpi_join.h"
#include "binding/errors.h"
#include "shm/shm.h"

namespace gradlink::binding {

CommunicatorHandle::Join jobJoinArg(const Napi::Value& value) {
  const Napi::Object from = objectArg(value, "place");
  const std::string backend = stringArg(from.Get("backend"), "backend");
  const std::string name = stringArg(from.Get("name"), "name");
  const int size = static_cast<int>(integerArg(from.Get("size"), "size", 1, kMaxRanks));
  const int rank = static_cast<int>(integerArg(from.Get("rank"), "rank", 0, size - 1));
  const double timeoutMs = numberArg(from.Get("timeoutMs"), "timeoutMs");
  // "mpi" also means TCP, after useTcp().
  if (backend == "mpi" || backend == "tcp") {
    messages::JoinOptions options;
    options.name = name;
    options.timeoutMs = timeoutMs;
    if (!booleanArg(from.Get("wholeJob"), "wholeJob")) {
      options.ranks.resize(static_cast<std::size_t>(size));
      std::iota(options.ranks.begin(), options.ranks.end(), 0);
    }
    return mpiJoin(std::move(options));
  }
  if (backend != "shm")
    throw argumentError(value.Env(), "backend", "'shm', 'mpi' or 'tcp'", backend);
  shm::JoinOptions options;
  options.job = stringArg(from.Get("job"), "job");
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.timeoutMs = timeoutMs;
  return [options](const std::atomic<bool>* cancelled) {
    shm::JoinOptions own = options;
    own.cancelled = cancelled;
    return shm::join(own);
  };
}

}  // namespace gradlink::binding
