// Reading the operations of lib/kvstore.
#pragma once

#include <vector>

#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "binding/store/handle.h"
#include "kvstore/store.h"

namespace gradlink::binding {

/// Reads (kind, keys, inputs, outputs, priority): keys is one number with flat lists of arrays, or
/// a list of numbers with lists of lists. Every array must have its key's length and type.
std::vector<Operation> operationsArg(const Napi::CallbackInfo&, const KVStoreHandle&);

/// A limit far above any machine.
inline constexpr int kMaxStoreDevices = 4096;

/// GPU ordinals, one for each device of a store.
std::vector<int> gpusArg(const Napi::Value&);
std::int32_t priorityArg(const Napi::Value&);

/// Reads (key, outputs, rows, priority): a Float64Array of row numbers for each output.
std::vector<Operation> rowOperationsArg(const Napi::CallbackInfo&, const KVStoreHandle&);

/// pushRows(key, inputs, rows of each, priority)
Operation rowPushArg(const Napi::CallbackInfo&, const KVStoreHandle&);

/// Keeps the arrays of operationsArg or rowOperationsArg.
void keepArrays(const Napi::Value& lists, Kept&);

}  // namespace gradlink::binding
