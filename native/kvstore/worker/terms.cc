#include "kvstore/worker/terms.h"

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"

namespace gradlink {
namespace {

struct Terms {
  std::uint32_t isWorker = 0;
  std::uint32_t asynchronous = 0;
  std::int32_t workers = 0;
  std::int32_t servers = 0;
  std::uint64_t bigArrayBound = 0;
  double timeoutMs = 0;
};
static_assert(sizeof(Terms) == 32);

Terms termsOf(const DistStoreOptions& options) {
  return {1,
          options.asynchronous ? 1U : 0U,
          options.workers,
          options.servers,
          options.bigArrayBound,
          options.timeoutMs};
}

Error differ(int rank, const std::string& what, const std::string& here, const std::string& there) {
  return Error(ErrorCode::mismatch, "the workers opened different stores: " + what + " is " + here +
                                        " on worker 0 and " + there + " on worker " +
                                        std::to_string(rank))
      .withRank(rank)
      .withOp("create");
}

const char* kindOf(const Terms& terms) {
  return terms.asynchronous != 0 ? "asynchronous" : "synchronous";
}

void checkSame(const Terms& first, const Terms& other, int rank) {
  if (first.asynchronous != other.asynchronous) {
    throw differ(rank, "the type", kindOf(first), kindOf(other));
  }
  if (first.workers != other.workers || first.servers != other.servers) {
    const auto shape = [](const Terms& terms) {
      return std::to_string(terms.workers) + " workers and " + std::to_string(terms.servers) +
             " servers";
    };
    throw differ(rank, "the job", shape(first), shape(other));
  }
  if (first.bigArrayBound != other.bigArrayBound) {
    throw differ(rank, "bigArrayBound", std::to_string(first.bigArrayBound),
                 std::to_string(other.bigArrayBound));
  }
}

}  // namespace

DistStoreOptions agreeOnTerms(Communicator& comm, const DistStoreOptions* own,
                              const CallOptions& call) {
  const auto size = static_cast<std::size_t>(comm.size());
  const Terms mine = own == nullptr ? Terms{} : termsOf(*own);
  std::vector<Terms> all(size);
  const void* in = &mine;
  void* out = all.data();
  comm.allGather({.in = {&in, 1}, .out = {&out, 1}}, sizeof(Terms), DType::uint8, call);
  const Terms& first = all.front();
  for (std::size_t rank = 0; rank < size; ++rank) {
    const auto number = static_cast<int>(rank);
    const bool worker = number < first.workers;
    if (first.isWorker == 0 || (all[rank].isWorker != 0) != worker) {
      throw Error(ErrorCode::mismatch,
                  "rank " + std::to_string(number) + " of the store came as a " +
                      (all[rank].isWorker != 0 ? "worker" : "server") + ", where a " +
                      (worker ? "worker" : "server") + " was expected")
          .withRank(number)
          .withOp("create");
    }
    if (worker) checkSame(first, all[rank], number);
  }
  const auto expected = static_cast<std::int64_t>(first.workers) + first.servers;
  if (static_cast<std::int64_t>(size) != expected) {
    throw Error(ErrorCode::mismatch,
                std::to_string(size) + " processes met for a store of " +
                    std::to_string(first.workers) + " workers and " +
                    std::to_string(first.servers) +
                    " servers: start both with one gradlink launch -n WORKERS -s SERVERS")
        .withOp("create");
  }
  DistStoreOptions agreed = own == nullptr ? DistStoreOptions{} : *own;
  agreed.workers = first.workers;
  agreed.servers = first.servers;
  agreed.asynchronous = first.asynchronous != 0;
  agreed.bigArrayBound = first.bigArrayBound;
  agreed.timeoutMs = first.timeoutMs;
  return agreed;
}

}  // namespace gradlink
