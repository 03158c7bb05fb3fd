// The peer's side of run.js: times all-reduces of float32 in shared memory that servers of language
// models bring for their own processes, in place; they have no other form (allreduce_loop.h).
// build-shm.sh compiles it with one of them.
//
//   RANK=0 WORLD_SIZE=2 shm_allreduce BYTES,BYTES,... SECONDS NAME     NAME: new for each job
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <torch/all.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

static int rank, size;

#include "allreduce_loop.h"

#if defined(GRADLINK_VLLM)

#ifdef GRADLINK_VLLM_THREADS
int64_t init_shm_manager(const std::string&, int64_t size, int64_t rank, int64_t threads);
#else
int64_t init_shm_manager(const std::string&, int64_t size, int64_t rank);
#endif
std::string join_shm_manager(int64_t, const std::string&);
void shm_allreduce(int64_t, torch::Tensor&);

static int64_t manager;

static void join(const std::string& name) {
#ifdef GRADLINK_VLLM_THREADS
  manager = init_shm_manager(name, size, rank, 1);
#else
  manager = init_shm_manager(name, size, rank);
#endif
  // All must have made their memory before one looks for it, and vLLM leaves that to its callers.
  const auto made = [&](int r) { return "/dev/shm/" + name + "-made-" + std::to_string(r); };
  std::ofstream(made(rank)).close();
  for (int r = 0; r < size; ++r) {
    while (access(made(r).c_str(), F_OK) != 0) usleep(1000);
  }
  join_shm_manager(manager, name);
}
static void call(torch::Tensor& data) { shm_allreduce(manager, data); }

#else

#ifdef GRADLINK_DEEPSPEED
void shm_initialize(int size, int rank, char* address, char* port);
#else
void shm_initialize(int size, int rank, const char* address, const char* port);
#endif
void all_reduce_outer_loop(torch::Tensor& data, size_t count, int bytes);

static void join(const std::string& name) {
  std::string address = "gradlink";
  std::string port = name;
  shm_initialize(size, rank, address.data(), port.data());
}
static void call(torch::Tensor& data) {
  const auto count = static_cast<size_t>(data.numel());
  all_reduce_outer_loop(data, count, static_cast<int>(count * sizeof(float)));
}

#endif

static void reduce(float* in, float* /*out*/, int count) {
  // Made once a size: it would take longer than a small call.
  static torch::Tensor tensor;
  if (!tensor.defined() || tensor.data_ptr() != in || tensor.numel() != count) {
    tensor = torch::from_blob(in, {count});
  }
  call(tensor);
}
static float expectedAt(int i) { return sumAt(i); }

// Ranks agree beside what is measured: vLLM's flags overtake its streaming stores, so that of an
// array of a few lines a rank may get the one before.
// As many as vLLM takes.
constexpr int kMostRanks = 8;
struct Board {
  std::atomic<uint64_t> arrived;
  double times[kMostRanks][kMaxSamples];
};
static Board* board;

static void openBoard(const std::string& name) {
  const int file = shm_open(("/" + name + "-board").c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, sizeof(Board)) != 0) {
    perror("shm_allreduce: no shared memory to agree in");
    exit(1);
  }
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) exit(1);
  board = static_cast<Board*>(memory);
}

static void meet() {
  const auto all = static_cast<uint64_t>(size);
  const uint64_t last = board->arrived.fetch_add(1) / all * all + all;
  while (board->arrived.load() < last) sched_yield();
}
static double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}
static void largest(const double* own, double* ofAll, int count) {
  std::copy_n(own, count, board->times[rank]);
  meet();
  for (int i = 0; i < count; ++i) {
    ofAll[i] = 0;
    for (int r = 0; r < size; ++r) ofAll[i] = std::max(ofAll[i], board->times[r][i]);
  }
  meet();
}
static double agreed(double own) {
  if (rank == 0) board->times[0][0] = own;
  meet();
  const double ofAll = board->times[0][0];
  meet();
  return ofAll;
}

// Once all have mapped it, the memory needs no name; they would leave it behind.
static void removeNames(const std::string& name) {
  meet();
  if (rank != 0) return;
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    if (file.path().string().find(name) != std::string::npos) files.push_back(file.path());
  }
  for (const auto& file : files) std::filesystem::remove(file);
}

int main(int argc, char** argv) {
  const char* const own = getenv("RANK");
  const char* const all = getenv("WORLD_SIZE");
  if (argc != 4 || own == nullptr || all == nullptr) {
    fprintf(stderr, "usage: RANK=0 WORLD_SIZE=2 shm_allreduce BYTES,BYTES,... SECONDS NAME\n");
    return 2;
  }
  rank = atoi(own);
  size = atoi(all);
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size) {
    fprintf(stderr, "expected a WORLD_SIZE of 1 to %d and a RANK below it, got %s and %s\n",
            kMostRanks, all, own);
    return 2;
  }
  torch::set_num_threads(1);
  openBoard(argv[3]);
  join(argv[3]);
  removeNames(argv[3]);
  measureAll(argv[1], "in", atof(argv[2]));
  meet();
  return 0;
}
