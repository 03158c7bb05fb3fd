// A store of values for a store of several workers: the parts of keys that this worker steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kvstore/store.h"

namespace gradlink {

struct FittingStates;

class SteppingStore : public Store {
 public:
  /// Defines a key for the part of a larger one that starts at `first`.
  virtual KeyId definePart(const std::string& name, DType dtype, std::size_t count,
                           std::size_t first) = 0;
  /// saveStates into memory, without the optimizer.
  virtual void copyStates(std::shared_ptr<std::vector<std::uint8_t>> to,
                          std::shared_ptr<Ticket>) = 0;
  /// loadStates from states that fit this store's keys.
  virtual void takeStates(FittingStates states, std::shared_ptr<Ticket>) = 0;
};

}  // namespace gradlink
