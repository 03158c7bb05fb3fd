#include "kvstore/store.h"

#include "kvstore/base/misuse.h"

namespace gradlink {
namespace {

Error needsServers(const std::string& what) {
  return storeUnsupported(what + " needs a store with servers: dist_sync or dist_async");
}

}  // namespace

std::unique_ptr<PreparedCall> Store::prepare(std::vector<Operation> /*operations*/) {
  throw storeUnsupported("only stores on GPUs prepare calls: submit the operations each time");
}

void Store::leave(std::shared_ptr<Ticket> /*ticket*/) { throw needsServers("leave"); }

WorkerReport Store::report() const { throw needsServers("report"); }

std::vector<ShardPlace> Store::placement() const { throw needsServers("placement"); }

void Store::serverReports(std::shared_ptr<std::vector<std::string>> /*into*/,
                          std::shared_ptr<Ticket> /*ticket*/) {
  throw needsServers("report");
}

void Store::command(const std::string& op, const std::string& /*text*/,
                    std::shared_ptr<Ticket> /*ticket*/) {
  throw needsServers(op);
}

}  // namespace gradlink
