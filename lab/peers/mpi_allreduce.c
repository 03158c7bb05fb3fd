// The peer's side of run.js: times MPI_Allreduce of float32 with a native loop, as gradlink's own
// timed loop does, and prints one JSON line for each size and place: seconds of one call, for each
// sample the slowest rank's.
//
//   mpi_allreduce BYTES,BYTES,... in,out SECONDS [neighbors]     SECONDS: about how long to sample
//
// neighbors: averages with one neighbor a call instead, 1, 2, 4 ... ranks away in turn, by
// MPI_Neighbor_alltoall and a loop of its own.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxSamples = 200, kMinSamples = 5, kMaxGraphs = 31 };

static int rank, size;
// One a distance; none: all-reduce.
static MPI_Comm graphs[kMaxGraphs];
static int graphCount, step;
static float* received;

static void* allocate(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, 64, bytes < 64 ? 64 : bytes) != 0) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

static void makeGraphs(void) {
  int weight = 1;
  for (int distance = 1; distance < size && graphCount < kMaxGraphs; distance *= 2) {
    int source = (rank + size - distance) % size;
    int destination = (rank + distance) % size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &source, &weight, 1, &destination, &weight,
                                   MPI_INFO_NULL, 0, &graphs[graphCount++]);
  }
}

static void average(float* restrict in, float* restrict out, const float* restrict theirs,
                    int count) {
  for (int i = 0; i < count; ++i) out[i] = 0.5f * in[i] + 0.5f * theirs[i];
}

static void averageInPlace(float* restrict data, const float* restrict theirs, int count) {
  for (int i = 0; i < count; ++i) data[i] = 0.5f * data[i] + 0.5f * theirs[i];
}

static void reduce(float* in, float* out, int count) {
  if (graphCount > 0) {
    MPI_Neighbor_alltoall(in, count, MPI_FLOAT, received, count, MPI_FLOAT,
                          graphs[step++ % graphCount]);
    if (in == out) {
      averageInPlace(in, received, count);
    } else {
      average(in, out, received, count);
    }
    return;
  }
  MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

// Inputs differ by rank and index and are small whole numbers, so that their sum is exact.
static long verify(float* in, float* out, int count) {
  for (int i = 0; i < count; ++i) in[i] = (float)((i % 61) + rank);
  int source = (rank + size - 1) % size;
  step = 0;
  reduce(in, out, count);
  long wrong = 0;
  for (int i = 0; i < count; ++i) {
    float sum = (float)(size * (i % 61) + size * (size - 1) / 2);
    float mean = (float)(i % 61) + 0.5f * (float)(rank + source);
    if (out[i] != (graphCount > 0 ? mean : sum)) ++wrong;
  }
  long total = 0;
  MPI_Allreduce(&wrong, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return total;
}

static double timeBatch(float* in, float* out, int count, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) reduce(in, out, count);
  return (MPI_Wtime() - start) / calls;
}

// Seconds of one call, from a batch that grows until it is long enough to trust; rank 0 decides for
// all.
static double warmUp(float* in, float* out, int count) {
  double each = 0;
  for (int calls = 1; calls <= 4096; calls *= 4) {
    each = timeBatch(in, out, count, calls);
    MPI_Bcast(&each, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (each * calls > 0.02) break;
  }
  return each;
}

static void measure(size_t bytes, int inPlace, double seconds) {
  int count = (int)(bytes / sizeof(float));
  float* in = allocate(bytes);
  float* out = inPlace ? in : allocate(bytes);
  if (graphCount > 0) received = allocate(bytes);
  long wrong = verify(in, out, count);
  // In place a sum of sums would run to infinity; zero stays zero, and costs the same.
  memset(in, 0, bytes);
  memset(out, 0, bytes);

  // A sample of a short call is the mean of many, so that the clock's own cost does not show.
  double warm = warmUp(in, out, count);
  int calls = warm < 1e-3 ? (int)(2e-3 / (warm + 1e-9)) : 1;
  if (calls < 1) calls = 1;
  int samples = (int)(seconds / (warm * calls + 1e-9));
  if (samples < kMinSamples) samples = kMinSamples;
  if (samples > kMaxSamples) samples = kMaxSamples;

  double times[kMaxSamples];
  double slowest[kMaxSamples];
  for (int i = 0; i < samples; ++i) times[i] = timeBatch(in, out, count, calls);
  MPI_Reduce(times, slowest, samples, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("{\"bytes\": %zu, \"place\": \"%s\", \"wrong\": %ld, \"calls\": %d, \"seconds\": [",
           bytes, inPlace ? "in" : "out", wrong, calls);
    for (int i = 0; i < samples; ++i) printf("%s%.9e", i == 0 ? "" : ", ", slowest[i]);
    printf("]}\n");
    fflush(stdout);
  }
  if (graphCount > 0) free(received);
  if (out != in) free(out);
  free(in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4 && argc != 5) {
    if (rank == 0) {
      fprintf(stderr, "usage: mpi_allreduce BYTES,BYTES,... in,out SECONDS [neighbors]\n");
    }
    MPI_Finalize();
    return 2;
  }
  if (argc == 5) makeGraphs();
  const char* places[] = {"in", "out"};
  for (char* next = argv[1]; *next != '\0';) {
    size_t bytes = strtoull(next, &next, 10);
    if (*next == ',') ++next;
    for (int i = 0; i < 2; ++i) {
      if (strstr(argv[2], places[i]) != NULL) measure(bytes, i == 0, atof(argv[3]));
    }
  }
  MPI_Finalize();
  return 0;
}
