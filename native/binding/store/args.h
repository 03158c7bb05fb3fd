// Reading the operations that lib/kvstore hands over.
#pragma once

#include <vector>

#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "binding/store/handle.h"
#include "kvstore/store.h"

namespace gradlink::binding {

/// Reads (kind, keys, inputs, outputs, priority): keys is one number with flat lists of arrays, or
/// a list of numbers with lists of lists. Every array must have exactly its key's length and type.
std::vector<Operation> operationsArg(const Napi::CallbackInfo&, const KVStoreHandle&);

/// An int32.
/// A guard against a slip of the pen, far above any machine.
inline constexpr int kMaxStoreDevices = 4096;

/// Ordinals of GPUs, one a device of a store.
std::vector<int> gpusArg(const Napi::Value&);
std::int32_t priorityArg(const Napi::Value&);

/// Reads (key, outputs, rows, priority): for each output a Float64Array of row numbers.
std::vector<Operation> rowOperationsArg(const Napi::CallbackInfo&, const KVStoreHandle&);

/// pushRows(key, inputs, rows of each, priority)
Operation rowPushArg(const Napi::CallbackInfo&, const KVStoreHandle&);

/// The arrays that operationsArg or rowOperationsArg read, for keeping.
void keepArrays(const Napi::Value& lists, Kept&);

}  // namespace gradlink::binding
