// The passes over memory for one push and the pulls merged with it, or for a group of pulls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/kernels/result_stores.h"
#include "kvstore/base/rows.h"
#include "kvstore/local/key_lane.h"
#include "kvstore/local/scheduler.h"

namespace gradlink {

class KeyWork final : public Work {
 public:
  explicit KeyWork(KeyLane& key) : key_(key) {}
  /// Chooses the stages; call after the items are set.
  void prepare();

  std::optional<Phase> next() override;
  void run(std::size_t part) override;

 private:
  enum class Stage : std::uint8_t {
    assign,      // value and outputs := sum of the inputs
    merge,       // merged := sum of the inputs
    update,      // value := optimizer(value, inputs or merged), outputs := value
    external,    // an external updater changes the value
    copyOut,     // outputs := value
    gather,      // touched := sum of the rows of the inputs
    spread,      // merged := touched, and 0 elsewhere
    assignRows,  // value := touched, and 0 elsewhere
    updateRows,  // the same rows of value := optimizer(value, touched)
    rows,        // output := the wanted rows of value, the rest 0
  };
  struct Range {
    std::size_t first;
    std::size_t count;
  };

  const KeyItem& head() const { return *items.front(); }
  Phase begin(Stage stage);
  Phase cut(std::size_t streams);
  Range rangeOf(std::size_t part) const;
  void beginUpdate();
  void makeResiduals();
  void sumInto(const std::vector<void*>& targets, Range range);
  void compressedSumInto(const std::vector<void*>& targets, Range range, bool streaming);
  void updateBlocks(std::size_t part);
  void copyOut(Range range);
  void copyRows(std::size_t part);
  void addRowStages();
  void gather();
  void spreadInto(void* to) const;
  void updateRows();

  KeyLane& key_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<void*>
      assignTargets_;  // the outputs, then the value: streaming goes by the alignment of the first
  std::vector<Stage> stages_;
  std::size_t stage_ = 0;
  ResultStores results_;  // of the stage
  bool begun_ = false;
  bool compress_ = false;
  bool sparse_ = false;
  std::size_t partBlocks_ = 1;
  std::unique_ptr<UpdateRun> update_;
  int updatePhase_ = 0;
  std::vector<std::int64_t> rows_;  // wanted, sorted, each once
  SortedRows touched_;              // of a push of rows
  std::size_t partRows_ = 1;
};

}  // namespace gradlink
