// The memory layout of task lists, written by the host and read by kernels: the tasks, then the
// pointers that they refer to. Work is cut into tiles, one a block, counted over all tasks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/dtype.h"
#include "core/kernels/optimizer_step.h"
#include "core/kernels/pattern_type.h"
#include "core/kernels/reduce_op.h"

namespace gradlink::kernels {

/// Threads of a block, except for kernels documented otherwise.
inline constexpr unsigned kThreads = 256;
/// Bytes of one array that a block of the sum kernels covers: four vectors of 16 bytes a thread.
inline constexpr std::uint64_t kSumTileBytes = 16384;
inline constexpr std::uint64_t kStepTile = 4096;
inline constexpr std::uint64_t kWeightedTile = 4096;
/// Bytes of codes that a block of a compression kernel covers: four a thread.
inline constexpr std::uint64_t kCodeTile = 1024;
/// Elements that a block of the pattern kernels covers.
inline constexpr std::uint64_t kPatternTile = 4096;
/// Partial sums of squares of kUpdateBlock elements: element i is in lane i modulo this, as on the
/// host.
inline constexpr unsigned kLanes = 16;

/// The test data that one launch makes or checks.
struct PatternCall {
  std::uint64_t first;
  std::uint64_t count;
  std::uint64_t seed;
  std::uint64_t size;
  PatternType type;
  /// -1: the reduction of all ranks.
  std::int32_t rank;
  ReduceOp op;
};

struct SumData {
  std::uint64_t firstTile;
  std::uint64_t count;
  /// The sources, then the targets.
  void* const* pointers;
  std::uint32_t sources;
  std::uint32_t targets;
  /// All pointers are multiples of 16.
  std::uint32_t aligned;
  std::uint32_t unused;
};

/// One task a launch.
struct WeightedData {
  std::uint64_t count;
  const void* const* sources;
  const double* weights;
  std::uint64_t sourceCount;
  void* target;
  /// All of them are multiples of 16.
  std::uint64_t aligned;
};

struct StepData {
  std::uint64_t firstTile;
  std::uint64_t count;
  /// The gradients, then the targets.
  void* const* pointers;
  std::uint32_t grads;
  std::uint32_t targets;
  std::uint32_t aligned;
  std::uint32_t unused;
  void* weight;
  float* states[3];
  float* master;
  StepScalars<float> scalars;
};

/// An array's norms: two sums (weights; gradient or direction) for each lane and for each block.
struct NormData {
  std::uint64_t firstBlock;
  std::uint64_t blocks;
  double* lanes;
  double* sums;
};

struct TrustData {
  double learningRate;
  double wd;
  double absoluteRescale;
  double eta;
  double epsilon;
  double lowerBound;
  double upperBound;
  std::uint32_t layerwise;
  TrustRatio ratio;
};

struct CodeData {
  std::uint64_t firstTile;
  std::uint64_t count;
  const float* grad;
  float* residual;
  float* out;
  std::uint8_t* codes;
  std::uint64_t aligned;
};

}  // namespace gradlink::kernels
