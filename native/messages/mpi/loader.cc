#include "messages/mpi/loader.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/error.h"
#include "messages/tcp/tcp_shim.h"

namespace gradlink::messages {
namespace {

constexpr const char* kMpiVariable = "GRADLINK_MPI";

/// The launchers' variables choose among our own files; the user's names any file.
const char* fromEnvironment(const char* name) {
  return std::strcmp(name, kMpiVariable) == 0 ? codeFromEnvironment(name) : std::getenv(name);
}

/// The folder of this code's file: the addon, or a test.
std::string ownFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&loaded), &info) == 0 || info.dli_fname == nullptr) {
    return ".";
  }
  const std::string file = info.dli_fname;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

std::string fileOf(const std::string& what) {
  if (what.find('/') != std::string::npos) return what;
  return ownFolder() + "/gradlink_" + what + ".so";
}

Error unavailable(const std::string& message) {
  return Error(ErrorCode::backendUnavailable, message);
}

/// Null, with the reason, if loading fails.
const Shim* open(const std::string& file, std::string& reason) {
  // Global: Open MPI loads plugins that look for its symbols in the global scope.
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* said = dlerror();
    reason = said != nullptr ? said : "no reason given";
    return nullptr;
  }
  const auto entry = reinterpret_cast<ShimEntry>(dlsym(handle, kShimSymbol));
  const Shim* shim = entry != nullptr ? entry() : nullptr;
  if (shim == nullptr || shim->version != kShimVersion) {
    reason = file + " is not of this build of gradlink";
    return nullptr;
  }
  return shim;
}

std::string firstLine(const char* text) {
  const std::string whole = text;
  std::string line = whole.substr(0, whole.find('\n'));
  // MPICH aligns its lines with tabs; Open MPI appends its packager.
  for (char& c : line) c = c == '\t' ? ' ' : c;
  return line.substr(0, line.find(','));
}

/// UCX, under MPICH, hooks the allocator to notice freed memory. In V8 processes that crashed now
/// and then: pages of the heap were gone (1 of 20 runs of 7 ranks on 2 cores; none of 45 without).
/// Registered memory of RDMA is slower without it.
void keepUcxFromTheHeap() { setenv("UCX_MEM_EVENTS", "no", 0); }

/// Set by useTcp(), before the first load.
std::atomic<bool> tcpWanted{false};

Loaded load() {
  const Choice choice =
      tcpWanted.load() ? Choice{tcp::kFlavour, "the program"} : chooseMpi(fromEnvironment);
  if (choice.what == tcp::kFlavour) {
    const Shim& shim = tcp::shim();
    return {&shim, {shim.flavour, shim.libraryVersion(), "", choice.variable}};
  }
  keepUcxFromTheHeap();
  std::vector<std::string> candidates;
  if (choice.what.empty()) {
    candidates = {"openmpi", "mpich"};
  } else {
    candidates = {choice.what};
  }
  std::string reasons;
  for (const std::string& candidate : candidates) {
    const std::string file = fileOf(candidate);
    std::string reason;
    if (const Shim* shim = open(file, reason)) {
      return {shim,
              {shim->flavour, firstLine(shim->libraryVersion()), file,
               choice.variable.empty() ? "the first that loads" : choice.variable}};
    }
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  const std::string why =
      choice.variable.empty() ? "" : ", which the variable " + choice.variable + " names,";
  throw unavailable(
      "MPI is not available: " +
      (choice.what.empty() ? std::string("neither Open MPI nor MPICH could be loaded")
                           : "'" + choice.what + "'" + why + " could not be loaded") +
      " (" + reasons +
      "): where the MPI's own library is missing, install it (apt-get install openmpi-bin or "
      "mpich); where gradlink's part for it is missing or does not fit, install what compiles for "
      "it (libopenmpi-dev or libmpich-dev) and run npx gradlink build; or name another with "
      "GRADLINK_MPI (openmpi, mpich, tcp for ranks without MPI, or the path of a shim)");
}

struct Result {
  Loaded loaded;
  std::optional<Error> failure;

  Result() {
    try {
      loaded = load();
    } catch (const Error& error) {
      failure = error;
    }
  }
};

}  // namespace

Choice chooseMpi(const char* (*get)(const char* name)) {
  const auto given = [&](const char* name) {
    const char* value = get(name);
    return value != nullptr && value[0] != '\0';
  };
  if (given(kMpiVariable)) return {get(kMpiVariable), kMpiVariable};
  // Open MPI's mpirun also sets PMIx's variables; srun sets only those, or PMI's for MPICH.
  if (given("OMPI_COMM_WORLD_RANK")) return {"openmpi", "OMPI_COMM_WORLD_RANK"};
  if (given("PMI_RANK")) return {"mpich", "PMI_RANK"};
  if (given("PMIX_RANK")) return {"openmpi", "PMIX_RANK"};
  if (given("RANK") && given("WORLD_SIZE") && given("MASTER_ADDR") && given("MASTER_PORT")) {
    return {tcp::kFlavour, "MASTER_ADDR"};
  }
  return {};
}

const Loaded& loaded() {
  // Never destroyed: threads may ask while the process exits.
  static const Result* const result = new Result;
  if (result->failure) throw Error(*result->failure);
  return result->loaded;
}

const char* nameOfTransport() {
  return std::strcmp(shim().flavour, tcp::kFlavour) == 0 ? "tcp" : "mpi";
}

void useTcp(const tcp::Settings& settings) {
  tcp::set(settings);
  tcpWanted.store(true);
  const LibraryInfo& used = libraryInfo();
  if (used.flavour == tcp::kFlavour) return;
  throw misuse("join", "this process uses " + used.version +
                           " already, and one process has one transport between hosts");
}

const LibraryInfo& libraryInfo() { return loaded().info; }

}  // namespace gradlink::messages
