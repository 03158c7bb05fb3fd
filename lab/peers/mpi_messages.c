// The peer's side of run.js for messages between two ranks: times MPI_Send and MPI_Recv as
// `gradlink pairs` times send and receive, and prints one JSON line for each size and kind.
//
//   mpi_messages BYTES,BYTES,... latency,bandwidth SECONDS     SECONDS: about how long to sample
//
// latency: half of a message there and back. bandwidth: a window of 64 messages one way, then an
// answer of 4 bytes; a sample is one message's share. What came last is compared with what was
// sent.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxSamples = 1000, kMinSamples = 5, kWindow = 64 };

static int rank;

static double roundTrip(char* data, int bytes) {
  double start = MPI_Wtime();
  if (rank == 0) {
    MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / 2;
}

static double oneWay(char* data, int bytes) {
  int answer = 0;
  double start = MPI_Wtime();
  for (int i = 0; i < kWindow; ++i) {
    if (rank == 0) {
      MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 0) {
    MPI_Recv(&answer, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&answer, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / kWindow;
}

static void measure(int bytes, const char* kind, double seconds) {
  double (*time)(char*, int) = strcmp(kind, "latency") == 0 ? roundTrip : oneWay;
  int messages = time == oneWay ? kWindow : 2;
  char* data = malloc((size_t)bytes);
  if (data == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  // Rank 0's arrive, whatever the other rank has.
  for (int i = 0; i < bytes; ++i) data[i] = (char)(rank == 0 ? i % 61 : 100);

  double warm = 0;
  for (int i = 0; i < 3; ++i) warm = time(data, bytes);
  int samples = (int)(seconds / (warm * messages + 1e-9));
  if (samples < kMinSamples) samples = kMinSamples;
  if (samples > kMaxSamples) samples = kMaxSamples;
  MPI_Bcast(&samples, 1, MPI_INT, 0, MPI_COMM_WORLD);
  static double times[kMaxSamples];
  for (int i = 0; i < samples; ++i) times[i] = time(data, bytes);

  long own = 0;
  long wrong = 0;
  for (int i = 0; i < bytes; ++i) own += data[i] != (char)(i % 61);
  MPI_Reduce(&own, &wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("{\"bytes\": %d, \"place\": \"%s\", \"wrong\": %ld, \"seconds\": [", bytes, kind, wrong);
    for (int i = 0; i < samples; ++i) printf("%s%.9e", i == 0 ? "" : ", ", times[i]);
    printf("]}\n");
    fflush(stdout);
  }
  free(data);
}

int main(int argc, char** argv) {
  int size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4 || size != 2) {
    if (rank == 0) {
      fprintf(stderr,
              "usage, of 2 ranks: mpi_messages BYTES,BYTES,... latency,bandwidth SECONDS\n");
    }
    MPI_Finalize();
    return 2;
  }
  const char* kinds[] = {"latency", "bandwidth"};
  for (char* next = argv[1]; *next != '\0';) {
    int bytes = (int)strtol(next, &next, 10);
    if (*next == ',') ++next;
    for (int i = 0; i < 2; ++i) {
      if (strstr(argv[2], kinds[i]) != NULL) measure(bytes, kinds[i], atof(argv[3]));
    }
  }
  MPI_Finalize();
  return 0;
}
