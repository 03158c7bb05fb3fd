#include "binding/store/args.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/errors.h"

namespace gradlink::binding {

namespace {

enum class Memory : std::uint8_t { host, either };

/// `gpus` receives the GPU of each array that need not be on the host.
template <class Pointer>
void readArray(const Napi::Value& item, const KeyShape& shape, const char* name, Memory memory,
               std::vector<Pointer>& into, std::vector<int>& gpus) {
  const BufferView view =
      memory == Memory::host ? viewOf(item, shape.dtype, name) : viewOfAny(item, shape.dtype, name);
  if (view.length != shape.count) {
    throw argumentError(item.Env(), name, std::to_string(shape.count) + " elements",
                        std::to_string(view.length));
  }
  into.push_back(view.data);
  if (memory != Memory::host) gpus.push_back(view.device);
}

template <class Pointer>
void readArrays(const Napi::Value& value, const KeyShape& shape, const char* name, Memory memory,
                std::vector<Pointer>& into, std::vector<int>& gpus) {
  if (value.IsNull() || value.IsUndefined()) return;
  const Napi::Array list = arrayArg(value, name);
  const std::uint32_t length = list.Length();
  into.reserve(length);
  if (memory != Memory::host) gpus.reserve(length);
  for (std::uint32_t i = 0; i < length; ++i) {
    readArray(list.Get(i), shape, name, memory, into, gpus);
  }
}

std::vector<std::int64_t> rowsOf(const Napi::Value& value) {
  const BufferView view = viewOf(value, DType::float64, "rowIds");
  const auto* numbers = static_cast<const double*>(view.data);
  std::vector<std::int64_t> rows;
  rows.reserve(view.length);
  for (std::size_t i = 0; i < view.length; ++i) {
    // Fails for NaN, too; the rest converts without overflow.
    if (!(numbers[i] >= 0 && numbers[i] < 9e15)) {
      throw argumentError(value.Env(), "rowIds", "row numbers", std::to_string(numbers[i]));
    }
    rows.push_back(static_cast<std::int64_t>(numbers[i]));
  }
  return rows;
}

Memory storeMemory(const KVStoreHandle& handle) {
  return handle.onGpus() ? Memory::either : Memory::host;
}

KeyId keyArg(const Napi::Value& value) {
  return static_cast<KeyId>(integerArg(value, "key", 0, std::numeric_limits<KeyId>::max()));
}

Napi::Value itemOf(const Napi::Value& list, std::uint32_t index, const char* name) {
  if (list.IsNull() || list.IsUndefined()) return list;
  return arrayArg(list, name).Get(index);
}

}  // namespace

std::vector<int> gpusArg(const Napi::Value& value) {
  const Napi::Array list = arrayArg(value, "gpus");
  if (list.Length() > kMaxStoreDevices) {
    throw argumentError(value.Env(), "gpus", "at most " + std::to_string(kMaxStoreDevices),
                        std::to_string(list.Length()));
  }
  std::vector<int> gpus;
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    gpus.push_back(
        static_cast<int>(integerArg(list.Get(i), "gpus", 0, std::numeric_limits<int>::max())));
  }
  return gpus;
}

std::int32_t priorityArg(const Napi::Value& value) {
  return static_cast<std::int32_t>(integerArg(value, "priority",
                                              std::numeric_limits<std::int32_t>::min(),
                                              std::numeric_limits<std::int32_t>::max()));
}

std::vector<Operation> operationsArg(const Napi::CallbackInfo& info, const KVStoreHandle& handle) {
  const auto kind = static_cast<OperationKind>(
      integerArg(info[0], "kind", 0, static_cast<int>(OperationKind::pushPull)));
  const std::int32_t priority = priorityArg(info[4]);
  const auto read = [&](const Napi::Value& key, const Napi::Value& inputs,
                        const Napi::Value& outputs) {
    Operation operation;
    operation.kind = kind;
    operation.key = keyArg(key);
    operation.priority = priority;
    const KeyShape& shape = handle.shapeOf(operation.key);
    const Memory memory = storeMemory(handle);
    readArrays(inputs, shape, "value", memory, operation.in, operation.inGpus);
    readArrays(outputs, shape, "out", memory, operation.out, operation.outGpus);
    return operation;
  };
  std::vector<Operation> operations;
  if (!info[1].IsArray()) {
    operations.push_back(read(info[1], info[2], info[3]));
    return operations;
  }
  const auto keys = info[1].As<Napi::Array>();
  const std::uint32_t length = keys.Length();
  operations.reserve(length);
  for (std::uint32_t i = 0; i < length; ++i) {
    const Napi::HandleScope scope(info.Env());
    operations.push_back(
        read(keys.Get(i), itemOf(info[2], i, "values"), itemOf(info[3], i, "outs")));
  }
  return operations;
}

std::vector<Operation> rowOperationsArg(const Napi::CallbackInfo& info,
                                        const KVStoreHandle& handle) {
  const KeyId key = keyArg(info[0]);
  const KeyShape& shape = handle.shapeOf(key);
  const Napi::Array outputs = arrayArg(info[1], "out");
  const Napi::Array rows = arrayArg(info[2], "rowIds");
  const bool compact = booleanArg(info[4], "compact");
  std::vector<Operation> operations;
  for (std::uint32_t i = 0; i < outputs.Length(); ++i) {
    Operation operation;
    operation.kind = OperationKind::rowSparsePull;
    operation.key = key;
    operation.priority = priorityArg(info[3]);
    operation.rows = rowsOf(rows.Get(i));
    operation.compact = compact;
    KeyShape own = shape;
    if (compact) own.count = operation.rows.size() * shape.rowLength;
    readArray(outputs.Get(i), own, "out", storeMemory(handle), operation.out, operation.outGpus);
    operations.push_back(std::move(operation));
  }
  return operations;
}

Operation rowPushArg(const Napi::CallbackInfo& info, const KVStoreHandle& handle) {
  Operation operation;
  operation.kind = OperationKind::push;
  operation.key = keyArg(info[0]);
  operation.priority = priorityArg(info[3]);
  const KeyShape& shape = handle.shapeOf(operation.key);
  const Napi::Array inputs = arrayArg(info[1], "value");
  const Napi::Array rows = arrayArg(info[2], "indices");
  for (std::uint32_t i = 0; i < inputs.Length(); ++i) {
    operation.inRows.push_back(rowsOf(rows.Get(i)));
    KeyShape own = shape;
    own.count = operation.inRows.back().size() * shape.rowLength;
    readArray(inputs.Get(i), own, "value", Memory::host, operation.in, operation.inGpus);
  }
  return operation;
}

void keepArrays(const Napi::Value& lists, Kept& kept) {
  if (!lists.IsArray()) return;
  const auto list = lists.As<Napi::Array>();
  const std::uint32_t length = list.Length();
  for (std::uint32_t i = 0; i < length; ++i) {
    const Napi::Value item = list.Get(i);
    if (item.IsArray()) {
      keepArrays(item, kept);
    } else {
      keep(kept, item);
    }
  }
}

}  // namespace gradlink::binding
