// A store that has the values itself, seen by a store of several workers that leaves it the parts
// of keys which this worker steps.
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
  /// A key that is a part of a larger one: its elements from `first` on, which are stepped here.
  virtual KeyId definePart(const std::string& name, DType dtype, std::size_t count,
                           std::size_t first) = 0;
  /// As saveStates, without the optimizer, into memory.
  virtual void copyStates(std::shared_ptr<std::vector<std::uint8_t>> to,
                          std::shared_ptr<Ticket>) = 0;
  /// As loadStates, of states that fit this store's keys.
  virtual void takeStates(FittingStates states, std::shared_ptr<Ticket>) = 0;
};

}  // namespace gradlink
