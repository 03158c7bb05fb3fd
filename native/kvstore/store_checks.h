// What every store checks alike, whatever it is made of.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/kernels/dtype.h"
#include "kvstore/base/misuse.h"
#include "kvstore/key.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/store.h"

namespace gradlink {

inline bool isPush(OperationKind kind) {
  return kind == OperationKind::push || kind == OperationKind::pushPull;
}

/// Rows must divide the elements.
void checkRowLength(const std::string& name, std::size_t count, std::size_t rowLength);

/// Gradient compression is of whole arrays.
Error noCompressedRows(const std::string& name);

/// Inputs where the kind takes them and only there; rows that exist.
void checkOperation(const Operation&, const Key&);

/// An optimizer updates float types only: the error for a key of another.
std::exception_ptr needsFloats(const std::string& name, DType);

/// What a key's state must fit.
struct StateShape {
  DType dtype;
  std::size_t count;
  std::size_t rowLength;
};
/// None where there is no key.
std::optional<StateShape> shapeOf(const Key*);

/// The states of a file and the optimizer they go with: the file's own, else `present`, counting on
/// from the file. Throws Error(invalidArgument) where the file does not fit, with nothing changed.
struct FittingStates {
  std::shared_ptr<Optimizer> optimizer;
  std::vector<std::unique_ptr<OptimizerState>> states;
};
using ShapeOf = std::function<std::optional<StateShape>(const std::string& key)>;
FittingStates readFittingStates(const std::string& file, std::shared_ptr<Optimizer> present,
                                const ShapeOf&);
/// The same of states that have been read; `file` is for the messages.
FittingStates fittingStates(LoadedStates loaded, const std::string& file,
                            std::shared_ptr<Optimizer> present, const ShapeOf&);
/// A file's states; errors name it.
LoadedStates readStates(const std::string& file);

/// Throws where there is none, or a schedule decides its rate.
void changeLearningRate(Optimizer*, double value);

/// Compression is set once, and not where values are merged on the host.
void checkCompressible(bool onHost, bool isSet);

/// Throws where there is no optimizer whose states could be saved.
void checkSaveable(const Optimizer*);

}  // namespace gradlink
