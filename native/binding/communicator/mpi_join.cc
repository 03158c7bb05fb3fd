#include "binding/communicator/mpi_join.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "messages/hosts.h"
#include "messages/job_end.h"
#include "shm/shm.h"

namespace gradlink::binding {

namespace {

constexpr int kMostStatus = 255;
constexpr int kMostPort = 65535;

std::unique_ptr<Communicator> joinHost(const std::string& job, const std::string& name, int rank,
                                       int size, double timeoutMs,
                                       const std::atomic<bool>* cancelled) {
  shm::JoinOptions options;
  options.job = job;
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.timeoutMs = timeoutMs;
  options.cancelled = cancelled;
  return shm::join(options);
}

Napi::Value abortMpiJob(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    messages::abortJob(stringArg(info[0], "message"),
                       static_cast<int>(integerArg(info[1], "status", 1, kMostStatus)));
    return info.Env().Undefined();
  });
}

Napi::Value mpiLibrary(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const messages::LibraryInfo& library = messages::libraryInfo();
    const Napi::Object object = Napi::Object::New(info.Env());
    object.Set("flavour", library.flavour);
    object.Set("version", library.version);
    object.Set("file", library.file);
    object.Set("chosenBy", library.chosenBy);
    return object;
  });
}

/// The place of this process in a job without MPI; call before joining.
Napi::Value useTcp(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Napi::Object from = objectArg(info[0], "options");
    messages::tcp::Settings settings;
    settings.size = static_cast<int>(integerArg(from.Get("size"), "size", 1, kMaxRanks));
    settings.rank = static_cast<int>(integerArg(from.Get("rank"), "rank", 0, settings.size - 1));
    settings.address = stringArg(from.Get("address"), "address");
    settings.port = static_cast<int>(integerArg(from.Get("port"), "port", 0, kMostPort));
    settings.own = stringArg(from.Get("own"), "own");
    settings.ports.first =
        static_cast<int>(integerArg(from.Get("firstPort"), "firstPort", 0, kMostPort));
    settings.ports.last = static_cast<int>(
        integerArg(from.Get("lastPort"), "lastPort", settings.ports.first, kMostPort));
    settings.secret = stringArg(from.Get("secret"), "secret");
    settings.sealsAll = booleanArg(from.Get("sealsAll"), "sealsAll");
    settings.keepAliveSeconds =
        static_cast<int>(integerArg(from.Get("keepAliveSeconds"), "keepAliveSeconds", 0, 32767));
    messages::useTcp(settings);
    return info.Env().Undefined();
  });
}

}  // namespace

CommunicatorHandle::Join mpiJoin(messages::JoinOptions options) {
  return [options = std::move(options)](const std::atomic<bool>* cancelled) {
    messages::JoinOptions own = options;
    own.cancelled = cancelled;
    auto joined =
        messages::joinOverHosts(own, [cancelled](const std::string& job, const std::string& name,
                                                 int rank, int size, double timeoutMs) {
          return joinHost(job, name, rank, size, timeoutMs, cancelled);
        });
    messages::meetAtExit();
    return joined;
  };
}

CommunicatorHandle::Join mpiJoinArg(const Napi::Value& value) {
  const Napi::Object from = objectArg(value, "options");
  messages::JoinOptions options;
  options.name = stringArg(from.Get("name"), "name");
  options.timeoutMs = numberArg(from.Get("timeoutMs"), "timeoutMs");
  const BufferView ranks = viewOf(from.Get("ranks"), DType::int32, "ranks");
  const auto* first = static_cast<const std::int32_t*>(ranks.data);
  options.ranks.assign(first, first + ranks.length);
  return mpiJoin(std::move(options));
}

void exportMpi(Napi::Env env, Napi::Object exports) {
  exports.Set("abortMpiJob", Napi::Function::New<abortMpiJob>(env, "abortMpiJob"));
  exports.Set("useTcp", Napi::Function::New<useTcp>(env, "useTcp"));
  exports.Set("mpiLibrary", Napi::Function::New<mpiLibrary>(env, "mpiLibrary"));
}

}  // namespace gradlink::binding
