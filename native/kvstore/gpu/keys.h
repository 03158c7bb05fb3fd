// The keys of a store on GPUs, and what every such store does alike with them.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "kvstore/gpu/key.h"
#include "kvstore/key_table.h"
#include "kvstore/store.h"

namespace gradlink {

class GpuKeys {
 public:
  /// `gpus`: one ordinal a device of the store.
  explicit GpuKeys(std::vector<int> gpus) : gpus_(std::move(gpus)) {}

  /// `makeRoom` gets the key before anybody else sees it; where it throws, there is no key. Throws
  /// Error(invalidArgument) where the name is taken or rows do not divide the elements.
  KeyId define(const std::string& name, DType, std::size_t count, std::size_t rowLength,
               const std::function<void(GpuKey&)>& makeRoom);

  /// The operations with the places of their arrays (see located), those of keys that are cut in
  /// parts: a request for all that follow one another with one ticket and one priority. Throws
  /// where one does not fit.
  std::vector<GpuRequest> requestsOf(std::vector<Operation> operations,
                                     const std::function<std::size_t(int gpu)>& placeOf) const;

  /// Null where no key has that name.
  GpuKey* named(const std::string& name) const;
  std::vector<GpuKey*> all() const;

  /// Leaves the keys' memory to the process, for good: a device may still use it.
  void abandon() { table_.abandon(); }

 private:
  const std::vector<int> gpus_;
  /// Guards the table: keys are defined while states are saved on another thread.
  mutable std::mutex mutex_;
  KeyTable<GpuKey> table_;
};

}  // namespace gradlink
