// Checks that every store shares.
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

/// Gradient compression needs whole arrays.
Error noCompressedRows(const std::string& name);

/// Inputs if and only if the kind takes them; rows that exist.
void checkOperation(const Operation&, const Key&);

/// The error for a key of an integer type: optimizers update floats only.
std::exception_ptr needsFloats(const std::string& name, DType);

struct StateShape {
  DType dtype;
  std::size_t count;
  std::size_t rowLength;
};
std::optional<StateShape> shapeOf(const Key*);

/// States of a file and their optimizer: the file's own, else `present`, with the file's counts.
/// Throws Error(invalidArgument), with nothing changed, if the file does not fit.
struct FittingStates {
  std::shared_ptr<Optimizer> optimizer;
  std::vector<std::unique_ptr<OptimizerState>> states;
};
using ShapeOf = std::function<std::optional<StateShape>(const std::string& key)>;
FittingStates readFittingStates(const std::string& file, std::shared_ptr<Optimizer> present,
                                const ShapeOf&);
/// The same for loaded states; `file` is for messages.
FittingStates fittingStates(LoadedStates loaded, const std::string& file,
                            std::shared_ptr<Optimizer> present, const ShapeOf&);
LoadedStates readStates(const std::string& file);

/// Throws without an optimizer or with a schedule.
void changeLearningRate(Optimizer*, double value);

/// Compression is set once, and not for values merged on the host.
void checkCompressible(bool onHost, bool isSet);

/// Throws without an optimizer.
void checkSaveable(const Optimizer*);

}  // namespace gradlink
