// The timed loop of the peers' programs, as gradlink's own timed loop does it: prints one JSON line
// for each size and place: seconds of one call, for each sample the slowest rank's.
//
// A program includes this after rank and size, and has these functions. With MPI's header before
// it, all that ranks tell each other beside the calls is here.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// One call. in == out: in place.
static void reduce(float* in, float* out, int count);
/// What element i should be after the first call of a size; its input is inputAt(i, rank).
static float expectedAt(int i);
/// Returns when all ranks have come.
static void meet(void);
static double now(void);
/// Rank 0's value, on every rank.
static double agreed(double own);
/// Rank 0 gets the largest of the ranks' values, one by one.
static void largest(const double* own, double* ofAll, int count);

#ifdef MPI_VERSION
static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }
static double now(void) { return MPI_Wtime(); }
static double agreed(double own) {
  MPI_Bcast(&own, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return own;
}
static void largest(const double* own, double* ofAll, int count) {
  MPI_Reduce(own, ofAll, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}
#endif

enum { kMaxSamples = 200, kMinSamples = 5 };

static void* allocate(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, 64, bytes < 64 ? 64 : bytes) != 0) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(1);
  }
  return memory;
}

// Inputs differ by rank and index and are small whole numbers, so that their sum is exact.
static float inputAt(int i, int ofRank) { return (float)((i % 61) + ofRank); }
static float sumAt(int i) { return (float)(size * (i % 61) + size * (size - 1) / 2); }

static long verify(float* in, float* out, int count) {
  for (int i = 0; i < count; ++i) in[i] = inputAt(i, rank);
  reduce(in, out, count);
  long wrong = 0;
  for (int i = 0; i < count; ++i) wrong += out[i] != expectedAt(i);
  return wrong;
}

static double timeBatch(float* in, float* out, int count, int calls) {
  meet();
  double start = now();
  for (int i = 0; i < calls; ++i) reduce(in, out, count);
  return (now() - start) / calls;
}

// Seconds of one call, from a batch that grows until it is long enough to trust; rank 0 decides for
// all.
static double warmUp(float* in, float* out, int count) {
  double each = 0;
  for (int calls = 1; calls <= 4096; calls *= 4) {
    each = agreed(timeBatch(in, out, count, calls));
    if (each * calls > 0.02) break;
  }
  return each;
}

static void measure(size_t bytes, int inPlace, double seconds) {
  int count = (int)(bytes / sizeof(float));
  float* in = (float*)allocate(bytes);
  float* out = inPlace ? in : (float*)allocate(bytes);
  double wrong = (double)verify(in, out, count);
  // In place a sum of sums runs to infinity, which costs the same as other numbers. Zeros do not:
  // some processors write lines of zeros past the caches in half the time.

  // A sample of a short call is the mean of many, so that the clock's own cost does not show.
  double warm = warmUp(in, out, count);
  int calls = warm < 1e-3 ? (int)(2e-3 / (warm + 1e-9)) : 1;
  if (calls < 1) calls = 1;
  int samples = (int)(seconds / (warm * calls + 1e-9));
  if (samples < kMinSamples) samples = kMinSamples;
  if (samples > kMaxSamples) samples = kMaxSamples;

  double times[kMaxSamples];
  double slowest[kMaxSamples];
  double most = 0;
  for (int i = 0; i < samples; ++i) times[i] = timeBatch(in, out, count, calls);
  largest(times, slowest, samples);
  largest(&wrong, &most, 1);
  if (rank == 0) {
    printf("{\"bytes\": %zu, \"place\": \"%s\", \"wrong\": %.0f, \"calls\": %d, \"seconds\": [",
           bytes, inPlace ? "in" : "out", most, calls);
    for (int i = 0; i < samples; ++i) printf("%s%.9e", i == 0 ? "" : ", ", slowest[i]);
    printf("]}\n");
    fflush(stdout);
  }
  if (out != in) free(out);
  free(in);
}

/// All sizes of "8,1024", at the places of "in,out".
static void measureAll(const char* sizes, const char* places, double seconds) {
  static const char* const kPlaces[] = {"in", "out"};
  char* next = NULL;
  for (const char* from = sizes; *from != '\0'; from = *next == ',' ? next + 1 : next) {
    size_t bytes = strtoull(from, &next, 10);
    for (int i = 0; i < 2; ++i) {
      if (strstr(places, kPlaces[i]) != NULL) measure(bytes, i == 0, seconds);
    }
  }
}
