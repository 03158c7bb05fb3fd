#include "core/collective.h"

namespace gradlink {
namespace {

constexpr bool rowsAreInOrder() {
  for (int i = 0; i < kKindCount; ++i) {
    if (static_cast<int>(kCollectives[i].kind) != i) return false;
  }
  return static_cast<int>(Kind::neighborAllReduce) == kCollectiveCount;
}
static_assert(rowsAreInOrder());

}  // namespace

const char* nameOf(Kind kind) {
  return static_cast<int>(kind) < kKindCount ? traitsOf(kind).name : "an unknown operation";
}

const char* nameOf(Blocks blocks) {
  constexpr const char* kNames[] = {"none", "one", "each", "oneAtRoot", "eachAtRoot"};
  return kNames[static_cast<int>(blocks)];
}

std::string describe(const Shape& shape) {
  if (shape == kNodesCall) return "nodes";
  if (shape == kOpenWireCall) return "openWire";
  if (shape == kNamesCall) return "names";
  std::string text = nameOf(shape.kind);
  if (shape.kind == Kind::barrier || shape.kind == Kind::split) return text;
  text += "(";
  // In counted kinds every rank has its own counts.
  if (!isCounted(shape.kind)) text += "count " + std::to_string(shape.count) + ", ";
  text += nameOf(shape.dtype);
  if (hasOp(shape.kind)) text += std::string(", ") + nameOf(shape.op);
  if (hasRoot(shape.kind)) text += ", root " + std::to_string(shape.root);
  return text + ")";
}

}  // namespace gradlink
