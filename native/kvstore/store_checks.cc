#include "kvstore/store_checks.h"

#include <cstdint>
#include <utility>

#include "kvstore/base/whole_file.h"

namespace gradlink {

void checkRowLength(const std::string& name, std::size_t count, std::size_t rowLength) {
  if (rowLength != 0 && count % rowLength == 0) return;
  throw storeMisuse("key " + name + ": rows of " + std::to_string(rowLength) +
                    " elements do not divide " + std::to_string(count) + " elements");
}

void checkOperation(const Operation& operation, const Key& key) {
  const bool takes = operation.kind == OperationKind::init || isPush(operation.kind);
  if (takes == operation.in.empty()) {
    throw storeMisuse("key " + key.name + ": an operation has " + (takes ? "no" : "an unwanted") +
                      " input array");
  }
  const auto rows = static_cast<std::int64_t>(key.count / key.rowLength);
  const auto check = [&](const std::vector<std::int64_t>& wanted) {
    for (const std::int64_t row : wanted) {
      if (row >= 0 && row < rows) continue;
      throw storeMisuse("key " + key.name + " has " + std::to_string(rows) +
                        " rows, there is no row " + std::to_string(row));
    }
  };
  check(operation.rows);
  for (const auto& list : operation.inRows) check(list);
}

Error noCompressedRows(const std::string& name) {
  return storeUnsupported("key " + name +
                          ": pushes of rows are not compressed; open the store without "
                          "setGradientCompression, or push the array in full");
}

std::exception_ptr needsFloats(const std::string& name, DType dtype) {
  return std::make_exception_ptr(
      storeMisuse("an optimizer updates float arrays only; key " + name + " holds " +
                  nameOf(dtype) + ": use a float type, setUpdater, or another store for it"));
}

std::optional<StateShape> shapeOf(const Key* key) {
  if (key == nullptr) return std::nullopt;
  return StateShape{key->dtype, key->count, key->rowLength};
}

LoadedStates readStates(const std::string& file) {
  const auto bytes = readWholeFile(file);
  try {
    return loadStates(bytes);
  } catch (const Error& error) {
    throw storeMisuse(file + ": " + error.what());
  }
}

FittingStates readFittingStates(const std::string& file, std::shared_ptr<Optimizer> present,
                                const ShapeOf& shapeOf) {
  return fittingStates(readStates(file), file, std::move(present), shapeOf);
}

FittingStates fittingStates(LoadedStates loaded, const std::string& file,
                            std::shared_ptr<Optimizer> present, const ShapeOf& shapeOf) {
  std::shared_ptr<Optimizer> optimizer = std::move(present);
  if (loaded.spec) {
    optimizer = Optimizer::create(*loaded.spec);
  } else if (!optimizer) {
    throw storeMisuse(file + " holds states of " + loaded.optimizerName +
                      " without the optimizer itself: set that optimizer first");
  } else if (optimizer->spec().name != loaded.optimizerName) {
    throw storeMisuse(file + " holds states of " + loaded.optimizerName +
                      ", but the store's optimizer is " + optimizer->spec().name);
  }
  for (const auto& state : loaded.states) {
    const std::optional<StateShape> here = shapeOf(state->key);
    if (!here) {
      throw storeMisuse(file + " holds a state of key " + state->key +
                        ", which this store does not have: initialise the keys before loading");
    }
    if (here->dtype != state->dtype || here->count != state->count) {
      throw storeMisuse(file + ": key " + state->key + " was " + std::to_string(state->count) +
                        " " + nameOf(state->dtype) + ", here it is " + std::to_string(here->count) +
                        " " + nameOf(here->dtype));
    }
    state->rowLength = here->rowLength;
    optimizer->checkState(*state);
  }
  optimizer->setNumUpdate(loaded.numUpdate);
  return {std::move(optimizer), std::move(loaded.states)};
}

void changeLearningRate(Optimizer* optimizer, double value) {
  if (optimizer == nullptr) {
    throw storeMisuse("there is no learning rate to set: set an optimizer first");
  }
  optimizer->setLearningRate(value);
}

void checkCompressible(bool onHost, bool isSet) {
  if (onHost) {
    throw storeUnsupported(
        "a local store has no gradient compression: it merges on the host, so nothing leaves "
        "a device compressed; use the type 'device'");
  }
  if (isSet) throw storeMisuse("gradient compression is already set and cannot change");
}

void checkSaveable(const Optimizer* optimizer) {
  if (optimizer != nullptr) return;
  throw storeMisuse("there are no optimizer states to save: set an optimizer first");
}

}  // namespace gradlink
