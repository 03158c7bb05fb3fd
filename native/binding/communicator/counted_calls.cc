#include "binding/communicator/counted_calls.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/errors.h"
#include "binding/external_memory.h"
#include "core/error.h"
#include "core/memory/free_memory.h"
#include "core/memory/huge_pages.h"

namespace gradlink::binding {
namespace {

std::vector<std::size_t> readCounts(Napi::Env env, const double* counts, std::size_t size) {
  std::vector<std::size_t> read;
  for (std::size_t i = 0; i < size; ++i) {
    read.push_back(countArg(Napi::Number::New(env, counts[i]), "count"));
  }
  return read;
}

/// Elements of an input that is cut like this.
std::size_t lengthOf(Napi::Env env, CountedKind kind, const std::vector<std::size_t>& sent) {
  std::size_t length = 0;
  for (const std::size_t count : sent) {
    if (sendsWhole(kind)) {
      length = std::max(length, count);
    } else if (__builtin_add_overflow(length, count, &length)) {
      throw argumentError(env, "counts", "a sum that fits in memory", "more");
    }
  }
  return length;
}

Napi::Array listOf(const Napi::Value& value, const char* name, std::size_t length) {
  const Napi::Array list = arrayArg(value, name);
  if (list.Length() == length) return list;
  throw argumentError(value.Env(), name,
                      "one entry for each of the " + std::to_string(length) + " held ranks",
                      std::to_string(list.Length()));
}

}  // namespace

CountedOperation::CountedOperation(const Napi::CallbackInfo& info, const Side& side, Kept* kept)
    : onHost_(side.gpus.empty()) {
  const Napi::Env env = info.Env();
  const std::size_t held = side.communicator.heldRanks().size();
  const auto size = static_cast<std::size_t>(side.communicator.size());
  call_.kind = static_cast<CountedKind>(integerArg(info[0], "kind", 0, kCountedKindCount - 1));
  call_.dtype = onHost_ ? dtypeArg(info[1]) : gpuDTypeArg(info[1]);
  call_.op = static_cast<ReduceOp>(integerArg(info[2], "reduceOp", 0, kReduceOpCount - 1));
  call_.root =
      static_cast<int>(integerArg(info[3], "root", 0, static_cast<std::int64_t>(size) - 1));
  const Napi::Array input = listOf(info[4], "data", held);
  const auto* sent =
      static_cast<const double*>(memoryOf(info[5], DType::float64, held * size, "sent"));
  const bool knows = !info[6].IsNull();
  const double* expected = nullptr;
  if (knows) {
    expected =
        static_cast<const double*>(memoryOf(info[6], DType::float64, held * size, "expected"));
  }
  const Napi::Array output = listOf(info[7], "out", held);
  options_.timeoutMs = numberArg(info[8], "timeoutMs");
  made_.resize(held);
  for (std::uint32_t i = 0; i < held; ++i) {
    CountedPart& part = call_.parts.emplace_back();
    part.sent = readCounts(env, sent + i * size, size);
    if (knows) part.expected = readCounts(env, expected + i * size, size);
    // The engine takes one length of it for all.
    if (call_.kind == CountedKind::allGatherV &&
        std::any_of(part.sent.begin(), part.sent.end(),
                    [&](std::size_t count) { return count != part.sent.front(); })) {
      throw argumentError(env, "sent", "one count for all ranks", "others");
    }
    const std::size_t length = lengthOf(env, call_.kind, part.sent);
    const Napi::Value data = input.Get(i);
    if (length > 0) part.in = memoryOf(data, call_.dtype, length, "data", side.deviceOf(i));
    const Napi::Value out = output.Get(i);
    part.hasPlace = !out.IsNull();
    if (part.hasPlace) {
      const BufferView view = viewOn(side.deviceOf(i), out, call_.dtype, "out");
      part.out = view.data;
      part.capacity = view.length;
    }
    if (kept != nullptr) {
      keep(*kept, data);
      keep(*kept, out);
    }
  }
  call_.makePlace = [this](std::size_t part, std::size_t elements) {
    return makePlace(part, elements);
  };
}

void* CountedOperation::makePlace(std::size_t part, std::size_t elements) {
  const char* const op = nameOf(call_.kind);
  if (!onHost_) throw misuse(op, "expected out where ranks are GPUs, got none");
  const std::size_t bytes = elements * sizeOf(call_.dtype);
  requireMemory(op, bytes);
  constexpr std::size_t kLine = 64;
  const std::size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kLine;
  // aligned_alloc wants whole multiples of the alignment.
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, std::max(bytes, kLine)) != 0) {
    throw harmless(ErrorCode::outOfMemory, op, "no memory for " + std::to_string(bytes) + " bytes");
  }
  adviseHugePages(memory, bytes);
  made_[part] = std::shared_ptr<void>(memory, std::free);
  return memory;
}

void CountedOperation::run(Communicator& communicator) { communicator.counted(call_, options_); }

Napi::Value CountedOperation::result(Napi::Env env) const {
  const std::size_t size = call_.parts.front().counts.size();
  Napi::Float64Array counts = Napi::Float64Array::New(env, call_.parts.size() * size);
  const Napi::Array made = Napi::Array::New(env, call_.parts.size());
  for (std::uint32_t i = 0; i < call_.parts.size(); ++i) {
    const CountedPart& part = call_.parts[i];
    for (std::size_t r = 0; r < size; ++r) {
      counts[i * size + r] = static_cast<double>(part.counts[r]);
    }
    if (!made_[i]) {
      made.Set(i, env.Null());
      continue;
    }
    made.Set(i, arrayBufferOver(env, made_[i], made_[i].get(), part.got * sizeOf(call_.dtype),
                                nameOf(call_.kind)));
  }
  Napi::Object object = Napi::Object::New(env);
  object.Set("counts", counts);
  object.Set("made", made);
  return object;
}

}  // namespace gradlink::binding
