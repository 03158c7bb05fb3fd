#include "nccl/library.h"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "cuda/shared_library.h"

namespace gradlink::nccl {
namespace {

/// The code of 2.24, the first version with float8.
constexpr int kFirstWithFloat8 = 22400;

bool registersNothing() {
  const char* const given = std::getenv("GRADLINK_NCCL_REGISTER");
  const std::string wanted = given != nullptr && given[0] != '\0' ? given : "yes";
  if (wanted != "yes" && wanted != "no") {
    throw Error(ErrorCode::invalidArgument,
                "GRADLINK_NCCL_REGISTER must be yes or no, got '" + wanted + "'");
  }
  return wanted == "no";
}

void load(Library& library) {
  const cuda::SharedLibrary file({
      .what = "NCCL",
      .file = "libnccl.so.2",
      .variable = "GRADLINK_NCCL_LIBRARY",
      .folders = {"/usr/local/nvidia/lib64", "/usr/local/cuda/lib64"},
      .remedy = "install NCCL 2.18 or newer (the package libnccl2, or nvidia-nccl for Python)",
  });
  LibraryInfo& info = library.info;
  info.file = file.file();
  std::vector<std::string> missing;
#define GRADLINK_BIND(symbol, member, arguments) \
  file.bind(library.member, #symbol);            \
  if (library.member == nullptr) missing.emplace_back(#symbol);
  GRADLINK_NCCL_REQUIRED(GRADLINK_BIND)
#undef GRADLINK_BIND
#define GRADLINK_BIND(symbol, member, arguments) file.bind(library.member, #symbol);
  GRADLINK_NCCL_OPTIONAL(GRADLINK_BIND)
#undef GRADLINK_BIND
  file.bind(library.getErrorString, "ncclGetErrorString");
  file.bind(library.getLastError, "ncclGetLastError");

  if (library.getVersion != nullptr && library.getVersion(&info.version) != abi::kSuccess) {
    info.version = 0;
  }
  // Without this it is another library.
  if (library.getVersion == nullptr) missing = {"ncclGetVersion"};
  if (!missing.empty()) {
    throw Error(ErrorCode::backendUnavailable,
                "NCCL " + versionText(info.version) + " (" + info.file + ") has no " +
                    cuda::listed(missing) +
                    ": gradlink needs NCCL 2.18 or newer; install one, or set "
                    "GRADLINK_NCCL_LIBRARY to its file");
  }
  // Functions of a pair need each other.
  if (library.redOpDestroy == nullptr) library.redOpCreatePreMulSum = nullptr;
  if (library.memFree == nullptr) library.memAlloc = nullptr;
  if (library.commDeregister == nullptr) library.commRegister = nullptr;
  if (library.commWindowDeregister == nullptr) library.commWindowRegister = nullptr;
  info.float8 = info.version >= kFirstWithFloat8;
  info.registersNothing = registersNothing();
  info.simulation = library.groupSimulateEnd != nullptr;
  info.scaledSums = library.redOpCreatePreMulSum != nullptr;
  info.registration = library.commRegister != nullptr;
  info.windows = library.commWindowRegister != nullptr;
  info.exchanges =
      library.allToAll != nullptr && library.gather != nullptr && library.scatter != nullptr;
}

/// The library, or the reason why it cannot be loaded.
struct Loaded {
  Library library;
  std::optional<Error> failure;

  Loaded() {
    try {
      load(library);
    } catch (const Error& error) {
      failure = error;
    }
  }
};

/// Where the library's ranks of one machine meet; its text names the file that it could not make.
constexpr const char* kSharedMemory = "/dev/shm";

ErrorCode codeOf(abi::Result result) {
  switch (result) {
    case abi::kInvalidArgument:
    case abi::kInvalidUsage:
      return ErrorCode::invalidArgument;
    case abi::kRemoteError:
      return ErrorCode::peerLost;
    case abi::kTimeout:
      return ErrorCode::timeout;
    default:
      return ErrorCode::system;
  }
}

}  // namespace

const Library& Library::get() {
  // Never destroyed: NCCL's threads may still run when the process ends.
  static const Loaded& loaded = *new Loaded;
  if (loaded.failure) throw *loaded.failure;
  return loaded.library;
}

Error Library::failure(abi::Result result, const std::string& doing) const {
  std::string text = doing + ": NCCL " + versionText(info.version) + ": ";
  const char* name = getErrorString != nullptr ? getErrorString(result) : nullptr;
  text += name != nullptr ? name : "result " + std::to_string(result);
  const char* last = getLastError != nullptr ? getLastError(nullptr) : nullptr;
  if (last != nullptr && last[0] != '\0') text += ": " + std::string(last);
  if (result == abi::kSystemError && std::strstr(text.c_str(), kSharedMemory) != nullptr) {
    text += std::string(". ") + kSharedMemory +
            " may be full or too small: give it more room, in a container with docker run "
            "--shm-size=1g or --ipc=host, in a pod with an emptyDir of medium Memory there";
  }
  if (std::strstr(text.c_str(), "NCCL_DEBUG") == nullptr) {
    text += " (NCCL_DEBUG=WARN makes NCCL say more)";
  }
  return Error(codeOf(result), text);
}

const LibraryInfo& libraryInfo() { return Library::get().info; }

std::string versionText(int code) {
  if (code <= 0) return "of an unknown version";
  // Up to 2.8 the major version counts thousands, since 2.9 ten thousands.
  const int major = code < 10000 ? code / 1000 : code / 10000;
  const int rest = code < 10000 ? code % 1000 : code % 10000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." +
         std::to_string(rest % 100);
}

UniqueId makeUniqueId() {
  const Library& library = Library::get();
  abi::UniqueId id{};
  const abi::Result result = library.getUniqueId(&id);
  if (isFailure(result)) throw library.failure(result, "making an id for a communicator");
  UniqueId copy;
  static_assert(sizeof(copy) == sizeof(id));
  std::memcpy(copy.data(), id.bytes, sizeof(id));
  return copy;
}

}  // namespace gradlink::nccl
