// Optimizers that run in the store, without JavaScript, with MXNet 1.9.1's formulas and defaults.
//
// An update has three steps, so the order of issue decides the numbers on any number of threads:
//
// - optimizer.issue(state) counts the update and fixes rate, decay and step number. Call it in the
//   order of the pushes: a schedule depends on the largest count of any key.
// - UpdateRun run(...) binds weight and gradients.
// - run.execute() steps on the shared thread pool, or the caller runs phases and blocks on its own
//   threads. Blocks have a fixed size and norms are summed in block order in float64, so the result
//   does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernels/dtype.h"
#include "core/kernels/optimizer_step.h"
#include "core/memory/aligned_buffer.h"
#include "kvstore/base/rows.h"
#include "kvstore/optimizer/lr_scheduler.h"

namespace gradlink {

/// An optimizer as plain data, for lib/optimizers, servers and state files.
struct OptimizerSpec {
  /// "sgd", "adam", ... (optimizerNames()).
  std::string name;
  /// Options by TypeScript names ("learningRate", "nesterov" as 0 or 1, ...). Absent: the default.
  std::map<std::string, double> numbers;
  std::optional<SchedulerSpec> scheduler;
  /// Multipliers by key (int keys in decimal) or by parameter name.
  std::map<std::string, double> lrMult;
  std::map<std::string, double> wdMult;
  /// Key (int keys in decimal) -> parameter name. As in MXNet, if names are given, parameters
  /// without the suffix _weight or _gamma get no weight decay unless wdMult says so.
  std::map<std::string, std::string> paramNames;
};

std::span<const char* const> optimizerNames();

/// One named array of a state: "momentum", "mean", "variance", "master" ...
struct StateArray {
  std::string name;
  DType dtype;
  std::size_t count;
  AlignedBuffer data;
};

/// An optimizer's state of one key. One update of a key at a time; different keys in parallel.
struct OptimizerState {
  std::string key;
  DType dtype;
  std::size_t count;
  /// Updates issued so far, including begin_num_update once the first was issued.
  std::int64_t updates = 0;
  std::vector<StateArray> arrays;
  /// The rate of the previous update, or 0 (lars scales its momentum by the change).
  double lastLearningRate = 0;
  /// The first element's offset in the key, if other parts are stepped elsewhere; not saved.
  std::size_t first = 0;
  /// Elements of a row, for arrays with one number for each row.
  std::size_t rowLength = 1;
};

/// The numbers of one update, fixed at its issue.
struct UpdateNumbers {
  /// With this key's multiplier.
  double learningRate;
  /// With this key's multiplier.
  double wd;
  double rescaleGrad;
  /// The factor of the momentum: 1, except for lars after a change of the rate.
  double momentumScale;
  /// False for arrays that lars skips: names ending in gamma, beta or bias.
  bool layerwise;
  /// This key's update count, from 1.
  std::int64_t t;
};

class UpdateRun;
struct OptimizerMath;

class Optimizer {
 public:
  /// Throws Error(invalidArgument) for an unknown name or option, or a bad value.
  static std::unique_ptr<Optimizer> create(const OptimizerSpec& spec);
  ~Optimizer();

  const OptimizerSpec& spec() const { return spec_; }
  /// For running steps: kvstore/optimizer/math.h.
  const OptimizerMath& math() const { return *math_; }

  /// Whether an update of some rows leaves others and their states alone; else their gradient is 0.
  bool lazy() const;

  /// Zeroed state for one key; `weight` is read if the state copies it (multi-precision's master).
  /// `rowLength` divides the count. Throws Error(invalidArgument) unless dtype is a float type.
  std::unique_ptr<OptimizerState> createState(const std::string& key, const void* weight,
                                              std::size_t count, DType dtype,
                                              std::size_t rowLength = 1) const;

  /// Whether such a state starts with copies of the weights.
  bool copiesWeights(DType dtype) const;

  /// Throws Error(invalidArgument) with both lists of arrays unless the state fits this optimizer.
  void checkState(const OptimizerState& state) const;

  /// Counts an update of this key. Thread-safe.
  UpdateNumbers issue(OptimizerState& state);

  /// issue, bind and execute: weight := step(weight, sum of grads). grads have `count` elements of
  /// the state's dtype each, summed from the left in the same pass. Blocks; uses the thread pool.
  void update(OptimizerState& state, void* weight, std::span<const void* const> grads);

  /// The rate that the next issue would start from, before multipliers.
  double learningRate() const;
  /// Throws Error(invalidArgument) if there is a schedule.
  void setLearningRate(double value);
  double rescaleGrad() const;
  void setRescaleGrad(double value);
  /// The largest update count of any key.
  std::int64_t numUpdate() const;
  /// For restored states.
  void setNumUpdate(std::int64_t value);

 private:
  friend class UpdateRun;
  explicit Optimizer(const OptimizerSpec& spec);

  OptimizerSpec spec_;
  std::unique_ptr<const OptimizerMath> math_;
  mutable std::mutex mutex_;
  double currentRate() const;
  double multiplier(const std::map<std::string, double>& multipliers, const std::string& key,
                    double otherwise) const;
  const std::string& parameterName(const std::string& key) const;
  double wdMultiplier(const std::string& key) const;

  double learningRate_ = 0;
  double rescaleGrad_ = 1;
  std::int64_t beginNumUpdate_ = 0;
  std::int64_t numUpdate_ = 0;
};

/// One update in progress. Its arrays must stay valid until it is done.
class UpdateRun {
 public:
  UpdateRun(const Optimizer& optimizer, OptimizerState& state, const UpdateNumbers& numbers,
            void* weight, std::span<const void* const> grads);
  ~UpdateRun();
  UpdateRun(const UpdateRun&) = delete;
  UpdateRun& operator=(const UpdateRun&) = delete;

  /// The last phase also copies the new weights to `outputs`, which may be gradients.
  void handOut(std::span<void* const> outputs);

  /// Runs everything on the shared thread pool and the calling thread.
  void execute();

  // ---- or by hand: for each phase runBlocks over all blocks on any threads, then endPhase on one

  /// The gradients of the next blocks, by their virtual element 0, if they are not contiguous.
  void useGradients(std::span<const void* const> grads);
  /// The same for the weights of the next blocks.
  void useWeight(void* weight);
  /// 1; or 2 if the norm of the whole array (lars, lamb) or row (groupadagrad) is needed first.
  int phases() const;
  std::size_t blocks() const;
  /// Blocks [first, end) of this phase; disjoint ranges may run in parallel. `streaming`: outputs
  /// bypass the caches.
  void runBlocks(int phase, std::size_t first, std::size_t end, bool streaming = false);
  /// The same on the shared thread pool and the calling thread.
  void runOnPool(int phase, std::size_t first, std::size_t end);
  void endPhase(int phase);

  /// Whether the optimizer steps elements independently.
  bool takesElements() const;
  /// In place of all blocks, if takesElements(): only elements from `first` on, with this gradient.
  void runElements(const void* grad, std::size_t first, std::size_t count);
  /// In place of all blocks, for lazy optimizers: only these rows.
  void runRows(const SortedRows& grads, std::size_t rowLength);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Saving and loading, bit for bit.

/// All states, optionally with the spec, as self-describing little-endian bytes with a checksum.
std::vector<std::uint8_t> saveStates(const Optimizer& optimizer,
                                     std::span<const OptimizerState* const> states,
                                     bool dumpOptimizer);

struct LoadedStates {
  /// Present in a file written with dumpOptimizer.
  std::optional<OptimizerSpec> spec;
  /// The optimizer of the states; the caller reports a mismatch.
  std::string optimizerName;
  std::int64_t numUpdate;
  std::vector<std::unique_ptr<OptimizerState>> states;
};

/// Throws Error(invalidArgument) if the bytes are not such a file, are truncated or altered.
LoadedStates loadStates(std::span<const std::uint8_t> bytes);

}  // namespace gradlink
