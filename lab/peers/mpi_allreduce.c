// The peer's side of run.js: times MPI_Allreduce of float32 (allreduce_loop.h).
//
//   mpi_allreduce BYTES,BYTES,... in,out SECONDS [neighbors]     SECONDS: about how long to sample
//
// neighbors: averages with one neighbor a call instead, 1, 2, 4 ... ranks away in turn, by
// MPI_Neighbor_alltoall and a loop of its own.
#include <mpi.h>

static int rank, size;

#include "allreduce_loop.h"

enum { kMaxGraphs = 31 };

// One a distance; none: all-reduce.
static MPI_Comm graphs[kMaxGraphs];
static int graphCount, step, distance;
static float* received;
static int receivedCount;

static void makeGraphs(void) {
  int weight = 1;
  for (int away = 1; away < size && graphCount < kMaxGraphs; away *= 2) {
    int source = (rank + size - away) % size;
    int destination = (rank + away) % size;
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
    if (count > receivedCount) {
      free(received);
      received = allocate(count * sizeof(float));
      receivedCount = count;
    }
    int graph = step++ % graphCount;
    distance = 1 << graph;
    MPI_Neighbor_alltoall(in, count, MPI_FLOAT, received, count, MPI_FLOAT, graphs[graph]);
    if (in == out) {
      averageInPlace(in, received, count);
    } else {
      average(in, out, received, count);
    }
    return;
  }
  MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static float expectedAt(int i) {
  if (graphCount == 0) return sumAt(i);
  return 0.5f * (inputAt(i, rank) + inputAt(i, (rank + size - distance) % size));
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
  measureAll(argv[1], argv[2], atof(argv[3]));
  MPI_Finalize();
  return 0;
}
