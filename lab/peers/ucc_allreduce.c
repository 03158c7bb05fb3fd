// The peer's side of run.js: times UCC's all-reduce of float32 (allreduce_loop.h). MPI starts the
// ranks and carries their addresses. build-ucc.sh compiles it.
//
//   ucc_allreduce BYTES,BYTES,... in,out SECONDS     SECONDS: about how long to sample
#include <mpi.h>
#include <ucc/api/ucc.h>

static int rank, size;

#include "allreduce_loop.h"

static ucc_context_h context;
static ucc_team_h team;

static void must(ucc_status_t status, const char* what) {
  if (status == UCC_OK) return;
  fprintf(stderr, "%s: %s\n", what, ucc_status_string(status));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static ucc_status_t gather(void* own, void* all, size_t bytes, void* info, void** request) {
  (void)info;
  MPI_Request* made = (MPI_Request*)allocate(sizeof(MPI_Request));
  MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD, made);
  *request = made;
  return UCC_OK;
}
static ucc_status_t gathered(void* request) {
  int done = 0;
  MPI_Test((MPI_Request*)request, &done, MPI_STATUS_IGNORE);
  return done ? UCC_OK : UCC_INPROGRESS;
}
static ucc_status_t release(void* request) {
  free(request);
  return UCC_OK;
}

static void join(void) {
  const ucc_oob_coll_t addresses = {.allgather = gather,
                                    .req_test = gathered,
                                    .req_free = release,
                                    .n_oob_eps = (uint32_t)size,
                                    .oob_ep = (uint32_t)rank};
  ucc_lib_config_h libConfig;
  must(ucc_lib_config_read(NULL, NULL, &libConfig), "ucc_lib_config_read");
  const ucc_lib_params_t libParams = {.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE,
                                      .thread_mode = UCC_THREAD_SINGLE};
  ucc_lib_h lib;
  must(ucc_init(&libParams, libConfig, &lib), "ucc_init");
  ucc_lib_config_release(libConfig);

  ucc_context_config_h contextConfig;
  must(ucc_context_config_read(lib, NULL, &contextConfig), "ucc_context_config_read");
  const ucc_context_params_t contextParams = {.mask = UCC_CONTEXT_PARAM_FIELD_OOB,
                                              .oob = addresses};
  must(ucc_context_create(lib, &contextParams, contextConfig, &context), "ucc_context_create");
  ucc_context_config_release(contextConfig);

  ucc_team_params_t teamParams = {
      .mask = UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE | UCC_TEAM_PARAM_FIELD_OOB,
      .ep = (uint64_t)rank,
      .ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG,
      .oob = addresses};
  must(ucc_team_create_post(&context, 1, &teamParams, &team), "ucc_team_create_post");
  ucc_status_t status;
  while ((status = ucc_team_create_test(team)) == UCC_INPROGRESS) ucc_context_progress(context);
  must(status, "ucc_team_create_test");
}

static void reduce(float* in, float* out, int count) {
  const ucc_coll_buffer_info_t from = {.buffer = in,
                                       .count = (ucc_count_t)count,
                                       .datatype = UCC_DT_FLOAT32,
                                       .mem_type = UCC_MEMORY_TYPE_HOST};
  ucc_coll_args_t call = {.coll_type = UCC_COLL_TYPE_ALLREDUCE, .op = UCC_OP_SUM};
  call.src.info = from;
  call.dst.info = from;
  call.dst.info.buffer = out;
  if (in == out) {
    call.mask = UCC_COLL_ARGS_FIELD_FLAGS;
    call.flags = UCC_COLL_ARGS_FLAG_IN_PLACE;
  }
  ucc_coll_req_h request;
  must(ucc_collective_init(&call, &request, team), "ucc_collective_init");
  must(ucc_collective_post(request), "ucc_collective_post");
  ucc_status_t status;
  while ((status = ucc_collective_test(request)) > UCC_OK) ucc_context_progress(context);
  must(status, "ucc_collective_test");
  must(ucc_collective_finalize(request), "ucc_collective_finalize");
}
static float expectedAt(int i) { return sumAt(i); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4) {
    if (rank == 0) fprintf(stderr, "usage: ucc_allreduce BYTES,BYTES,... in,out SECONDS\n");
    MPI_Finalize();
    return 2;
  }
  join();
  measureAll(argv[1], argv[2], atof(argv[3]));
  MPI_Finalize();
  return 0;
}
