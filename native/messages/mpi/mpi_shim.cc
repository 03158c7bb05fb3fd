// The only file that includes mpi.h: compiled once against each MPI that is found.
#include "messages/shim.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>

#include <cstring>
#include <vector>

namespace gradlink::messages {
namespace {

template <class Neutral, class Native>
Neutral wrapped(Native native) {
  static_assert(sizeof(native) <= sizeof(Neutral::bits));
  Neutral neutral;
  std::memcpy(&neutral.bits, &native, sizeof(native));
  return neutral;
}
template <class Native, class Neutral>
Native unwrapped(const Neutral& neutral) {
  Native native;
  std::memcpy(&native, &neutral.bits, sizeof(native));
  return native;
}
MPI_Comm commOf(CommHandle comm) { return unwrapped<MPI_Comm>(comm); }

int sourceOf(int source) { return source == kAnySourceOfShim ? MPI_ANY_SOURCE : source; }
int tagOf(int tag) { return tag == kAnyTagOfShim ? MPI_ANY_TAG : tag; }

void fill(MessageStatus* to, const MPI_Status& from) {
  if (to == nullptr) return;
  int bytes = 0;
  MPI_Get_count(&from, MPI_BYTE, &bytes);
  *to = {from.MPI_SOURCE, from.MPI_TAG, static_cast<std::size_t>(bytes > 0 ? bytes : 0)};
}

/// Makes errors of a communicator return to the caller.
int made(int error, MPI_Comm comm, CommHandle* out) {
  if (error != MPI_SUCCESS) return error;
  error = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  *out = wrapped<CommHandle>(comm);
  return error;
}

const char* libraryVersion() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (text[0] == '\0') MPI_Get_library_version(text, &length);
  return text;
}

void errorText(int error, char* text, std::size_t capacity) {
  char whole[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(error, whole, &length) != MPI_SUCCESS) length = 0;
  const std::size_t copied =
      static_cast<std::size_t>(length) < capacity ? static_cast<std::size_t>(length) : capacity - 1;
  std::memcpy(text, whole, copied);
  text[copied] = '\0';
}

bool initialized() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

int init(double /*timeoutMs*/, bool* multiple) {
  int provided = MPI_THREAD_SINGLE;
  int error = MPI_SUCCESS;
  if (initialized()) {
    error = MPI_Query_thread(&provided);
  } else {
    error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  }
  *multiple = provided == MPI_THREAD_MULTIPLE;
  if (error != MPI_SUCCESS) return error;
  return MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

int finalize() { return MPI_Finalize(); }

void abortJob(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

/// Asks the running library, which may differ from the headers, by documented extensions.
bool cudaAware() {
#if defined(OPEN_MPI)
  using Query = int (*)();
  const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
#else
  using Query = int (*)(int kind, int* is);
  constexpr int kCuda = 0;  // MPIX_GPU_SUPPORT_CUDA
  const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support"));
  int is = 0;
  return query != nullptr && query(kCuda, &is) == MPI_SUCCESS && is != 0;
#endif
}

CommHandle world() { return wrapped<CommHandle>(MPI_COMM_WORLD); }
int rank(CommHandle comm, int* rank) { return MPI_Comm_rank(commOf(comm), rank); }
int size(CommHandle comm, int* size) { return MPI_Comm_size(commOf(comm), size); }

int createGroup(CommHandle comm, const int* ranks, int count, int tag, CommHandle* out) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group members = MPI_GROUP_NULL;
  MPI_Comm created = MPI_COMM_NULL;
  int error = MPI_Comm_group(commOf(comm), &all);
  if (error == MPI_SUCCESS) error = MPI_Group_incl(all, count, ranks, &members);
  if (error == MPI_SUCCESS) error = MPI_Comm_create_group(commOf(comm), members, tag, &created);
  if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  return made(error, created, out);
}

int duplicate(CommHandle comm, CommHandle* out) {
  MPI_Comm created = MPI_COMM_NULL;
  const int error = MPI_Comm_dup(commOf(comm), &created);
  return made(error, created, out);
}

int lowestOfNode(CommHandle comm, int* lowest) {
  MPI_Comm node = MPI_COMM_NULL;
  int error = MPI_Comm_rank(commOf(comm), lowest);
  if (error == MPI_SUCCESS) {
    error = MPI_Comm_split_type(commOf(comm), MPI_COMM_TYPE_SHARED, *lowest, MPI_INFO_NULL, &node);
  }
  if (error != MPI_SUCCESS) return error;
  error = MPI_Bcast(lowest, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  return error;
}

int freeComm(CommHandle comm) {
  MPI_Comm native = commOf(comm);
  return MPI_Comm_free(&native);
}

int isend(const void* data, std::size_t bytes, int destination, int tag, CommHandle comm,
          RequestHandle* request) {
  MPI_Request native = MPI_REQUEST_NULL;
  const int error =
      MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, destination, tag, commOf(comm), &native);
  // test() waits for it. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
  *request = wrapped<RequestHandle>(native);
  return error;
}

int irecv(void* data, std::size_t bytes, int source, int tag, CommHandle comm,
          RequestHandle* request) {
  MPI_Request native = MPI_REQUEST_NULL;
  const int error = MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, sourceOf(source), tagOf(tag),
                              commOf(comm), &native);
  // test() waits for it. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
  *request = wrapped<RequestHandle>(native);
  return error;
}

int test(RequestHandle* request, bool* done, MessageStatus* status) {
  auto native = unwrapped<MPI_Request>(*request);
  MPI_Status from;
  int flag = 0;
  const int error = MPI_Test(&native, &flag, status != nullptr ? &from : MPI_STATUS_IGNORE);
  *request = wrapped<RequestHandle>(native);
  *done = flag != 0;
  if (error == MPI_SUCCESS && flag != 0) fill(status, from);
  return error;
}

int testAll(RequestHandle* requests, int count, bool* done) {
  MPI_Request native[kMostTogether];
  for (int i = 0; i < count; ++i) native[i] = unwrapped<MPI_Request>(requests[i]);
  int flag = 0;
  const int error = MPI_Testall(count, native, &flag, MPI_STATUSES_IGNORE);
  *done = flag != 0;
  // MPI frees them only together, but may change those of a failure.
  if (flag != 0 || error != MPI_SUCCESS) {
    for (int i = 0; i < count; ++i) requests[i] = wrapped<RequestHandle>(native[i]);
  }
  return error;
}

int cancel(RequestHandle* request) {
  auto native = unwrapped<MPI_Request>(*request);
  const int error = MPI_Cancel(&native);
  *request = wrapped<RequestHandle>(native);
  return error;
}

int probe(int source, int tag, CommHandle comm, bool* found, MessageStatus* status) {
  MPI_Status from;
  int flag = 0;
  const int error = MPI_Iprobe(sourceOf(source), tagOf(tag), commOf(comm), &flag, &from);
  *found = flag != 0;
  if (error == MPI_SUCCESS && flag != 0) fill(status, from);
  return error;
}

int receive(void* data, std::size_t bytes, int source, int tag, CommHandle comm,
            MessageStatus* status) {
  MPI_Status from;
  const int error = MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, sourceOf(source), tagOf(tag),
                             commOf(comm), &from);
  if (error == MPI_SUCCESS) fill(status, from);
  return error;
}

#if defined(OPEN_MPI)
constexpr const char* kFlavour = "openmpi";
#else
constexpr const char* kFlavour = "mpich";
#endif

constexpr Shim kShim{
    .version = kShimVersion,
    .flavour = kFlavour,
    .libraryVersion = libraryVersion,
    .errorText = errorText,
    .blames = nullptr,
    .initialized = initialized,
    .init = init,
    .finalize = finalize,
    .abortJob = abortJob,
    .cudaAware = cudaAware,
    .world = world,
    .rank = rank,
    .size = size,
    .createGroup = createGroup,
    .duplicate = duplicate,
    .lowestOfNode = lowestOfNode,
    .freeComm = freeComm,
    .isend = isend,
    .irecv = irecv,
    .test = test,
    .testAll = testAll,
    .cancel = cancel,
    .release = nullptr,
    .probe = probe,
    .receive = receive,
    .goneAbove = nullptr,
    .whyGone = nullptr,
};

}  // namespace
}  // namespace gradlink::messages

extern "C" __attribute__((visibility("default"))) const gradlink::messages::Shim*
gradlinkMpiShim() {
  return &gradlink::messages::kShim;
}
