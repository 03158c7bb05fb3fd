// Optimizers that run where the store is, without JavaScript: formulas and defaults are
// MXNet 1.9.1's.
//
// An update has three steps, so that order of issue decides the numbers and any number of threads
// does the work:
//   1. optimizer.issue(state)  counts the update and fixes rate, decay and step number; call it in
//   the order in
//                              which the pushes were made (the schedule depends on the largest
//                              count of any key);
//   2. UpdateRun run(...)      binds weight and gradients;
//   3. run.execute()           on the shared thread pool, or phase by phase and block by block on
//   the caller's own
//                              threads. The result does not depend on how many threads took part:
//                              blocks have a fixed size, and norms are summed in block order in
//                              float64.
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

/// An optimizer as plain data: what lib/optimizers hands over, what a server receives, what a state
/// file can hold.
struct OptimizerSpec {
  /// "sgd", "adam", ... (optimizerNames()).
  std::string name;
  /// Options by their TypeScript names ("learningRate", "momentum", "nesterov" as 0 or 1, ...).
  /// Absent: the default.
  std::map<std::string, double> numbers;
  std::optional<SchedulerSpec> scheduler;
  /// Multipliers by key, int keys in decimal, or by parameter name.
  std::map<std::string, double> lrMult;
  std::map<std::string, double> wdMult;
  /// Key (int keys in decimal) -> parameter name. As in MXNet, when names are given, parameters
  /// whose name ends in neither _weight nor _gamma get no weight decay unless wdMult says
  /// otherwise.
  std::map<std::string, std::string> paramNames;
};

/// The known optimizers, sorted.
std::span<const char* const> optimizerNames();

/// One named array of an optimizer's state: "momentum", "mean", "variance", "master" ...
struct StateArray {
  std::string name;
  DType dtype;
  std::size_t count;
  AlignedBuffer data;
};

/// What an optimizer keeps for one key. One update of a key at a time; different keys may run side
/// by side.
struct OptimizerState {
  std::string key;
  DType dtype;
  std::size_t count;
  /// Updates issued so far, begin_num_update included once the first was issued.
  std::int64_t updates = 0;
  std::vector<StateArray> arrays;
  /// The rate of the update before (lars scales its momentum by the change); 0 before the first.
  double lastLearningRate = 0;
  /// Where in its key the first element is, whose other parts are stepped elsewhere; not saved.
  std::size_t first = 0;
  /// Elements of a row, for arrays that have one number for each.
  std::size_t rowLength = 1;
};

/// The numbers of one update, fixed when it was issued.
struct UpdateNumbers {
  /// With this key's multiplier.
  double learningRate;
  /// With this key's multiplier.
  double wd;
  double rescaleGrad;
  /// What the momentum is multiplied by in this update: 1 but for lars after a change of the rate.
  double momentumScale;
  /// False for the arrays lars leaves alone: names that end in gamma, beta or bias.
  bool layerwise;
  /// This key's update count, from 1.
  std::int64_t t;
};

class UpdateRun;
struct OptimizerMath;

class Optimizer {
 public:
  /// Throws Error(invalidArgument) for an unknown name (listing the known), an unknown option or a
  /// bad value.
  static std::unique_ptr<Optimizer> create(const OptimizerSpec& spec);
  ~Optimizer();

  const OptimizerSpec& spec() const { return spec_; }
  /// For whoever runs its steps: kvstore/optimizer_math.h.
  const OptimizerMath& math() const { return *math_; }

  /// Whether an update of some rows leaves the others, and what is kept for them, as they are;
  /// otherwise their gradient is 0.
  bool lazy() const;

  /// State for one key, zeroed; `weight` is read where the state starts as a copy of it
  /// (multi-precision's master). `rowLength` divides the count. Throws Error(invalidArgument) for a
  /// dtype that is not a float type.
  std::unique_ptr<OptimizerState> createState(const std::string& key, const void* weight,
                                              std::size_t count, DType dtype,
                                              std::size_t rowLength = 1) const;

  /// Whether such a state starts with copies of the weights.
  bool copiesWeights(DType dtype) const;

  /// Whether a state that came from elsewhere (a file) is one of this optimizer's: throws
  /// Error(invalidArgument) that says which arrays were expected and which came.
  void checkState(const OptimizerState& state) const;

  /// Counts an update of this key. Thread-safe.
  UpdateNumbers issue(OptimizerState& state);

  /// issue, bind and execute in one: weight := step(weight, sum of grads). grads are `count`
  /// elements of the state's dtype each and are summed from the left in the same pass. Blocks; uses
  /// the shared thread pool.
  void update(OptimizerState& state, void* weight, std::span<const void* const> grads);

  /// The rate that the next issue would start from (before multipliers).
  double learningRate() const;
  /// Throws Error(invalidArgument) when a schedule decides the rate.
  void setLearningRate(double value);
  double rescaleGrad() const;
  void setRescaleGrad(double value);
  /// The largest update count of any key so far.
  std::int64_t numUpdate() const;
  /// For restored states: the count goes on from here.
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

/// One update in progress. The arrays must stay as they are until it is done.
class UpdateRun {
 public:
  UpdateRun(const Optimizer& optimizer, OptimizerState& state, const UpdateNumbers& numbers,
            void* weight, std::span<const void* const> grads);
  ~UpdateRun();
  UpdateRun(const UpdateRun&) = delete;
  UpdateRun& operator=(const UpdateRun&) = delete;

  /// The last phase also copies the new weights to `outputs`, each of which may be one of the
  /// gradients. `streaming`: they are larger than the caches and may bypass them.
  void handOut(std::span<void* const> outputs, bool streaming);

  /// All of it on the shared thread pool and the calling thread.
  void execute();

  // ---- or by hand: for each phase in order: runBlocks over all blocks, on any threads; then
  // endPhase on one.

  /// The gradients of the blocks that run next, where they do not lie in one piece: each a pointer
  /// to where its element 0 would be.
  void useGradients(std::span<const void* const> grads);
  /// Likewise where the weights of the blocks that run next are.
  void useWeight(void* weight);
  /// 1; 2 for optimizers that need the norm of the whole array (lars, lamb) or row (groupadagrad)
  /// first.
  int phases() const;
  std::size_t blocks() const;
  /// Blocks [first, end) of this phase. Different ranges may run at the same time.
  void runBlocks(int phase, std::size_t first, std::size_t end);
  /// The same on the shared thread pool and the calling thread.
  void runOnPool(int phase, std::size_t first, std::size_t end);
  void endPhase(int phase);

  /// Of the optimizer, where it steps elements by themselves.
  bool takesElements() const;
  /// Instead of all blocks, where it takes them: elements from `first` on alone, whose gradient
  /// lies at `grad`.
  void runElements(const void* grad, std::size_t first, std::size_t count);
  /// Instead of all blocks, for optimizers that are lazy: these rows alone, with their gradients.
  void runRows(const SortedRows& grads, std::size_t rowLength);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Saving and loading, bit for bit.

/// All states, and the spec too if asked, as one self-describing little-endian byte string with a
/// checksum.
std::vector<std::uint8_t> saveStates(const Optimizer& optimizer,
                                     std::span<const OptimizerState* const> states,
                                     bool dumpOptimizer);

struct LoadedStates {
  /// Present when the file was written with dumpOptimizer.
  std::optional<OptimizerSpec> spec;
  /// The name the states belong to: loading adam's states into sgd is an error the caller reports.
  std::string optimizerName;
  std::int64_t numUpdate;
  std::vector<std::unique_ptr<OptimizerState>> states;
};

/// Throws Error(invalidArgument) when the bytes are not such a file, are cut short or were altered.
LoadedStates loadStates(std::span<const std::uint8_t> bytes);

}  // namespace gradlink
