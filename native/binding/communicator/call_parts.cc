#include "binding/communicator/call_parts.h"

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

/// A Float64Array of at least `length` numbers.
const double* numbersArg(const Napi::Value& value, const char* name, std::size_t length) {
  return static_cast<const double*>(memoryOf(value, DType::float64, length, name));
}

std::vector<std::size_t> countsOf(Napi::Env env, const double* counts, std::size_t length) {
  std::vector<std::size_t> read;
  for (std::size_t i = 0; i < length; ++i) {
    read.push_back(countArg(Napi::Number::New(env, counts[i]), "count"));
  }
  return read;
}

void addTo(Napi::Env env, std::size_t& total, std::size_t count) {
  if (!__builtin_add_overflow(total, count, &total)) return;
  throw argumentError(env, "counts", "a sum that fits in memory", "more");
}

std::vector<Neighbor> neighborsArg(const Napi::Value& ranks, const Napi::Value& weights,
                                   const char* name, int size) {
  const std::vector<int> read = ranksArg(ranks, name, size);
  const double* const weight = numbersArg(weights, name, read.size());
  std::vector<Neighbor> neighbors;
  for (std::size_t i = 0; i < read.size(); ++i) neighbors.push_back({read[i], weight[i]});
  return neighbors;
}

void keepBoth(const GivenArguments& given, const Napi::Value& data, const Napi::Value& out) {
  if (given.kept == nullptr) return;
  keep(*given.kept, data);
  keep(*given.kept, out);
}

Napi::Array someOf(const Napi::Value& value, const char* name) {
  const Napi::Array list = arrayArg(value, name);
  if (list.Length() > 0) return list;
  throw argumentError(value.Env(), name, "one entry or more", "none");
}

/// The index of the held rank of a list's entry.
std::size_t heldArg(const Napi::Object& one, const Side& side) {
  const auto held = static_cast<std::int64_t>(side.held());
  return static_cast<std::size_t>(integerArg(one.Get("held"), "held", 0, held - 1));
}

int peerArg(const Napi::Object& one, const Side& side) {
  return static_cast<int>(integerArg(one.Get("peer"), "peer", 0, side.communicator.size() - 1));
}

std::size_t lengthOf(Napi::Env env, Kind kind, const std::vector<std::size_t>& sent) {
  std::size_t length = 0;
  for (const std::size_t count : sent) {
    if (sendsWhole(kind)) {
      length = std::max(length, count);
    } else {
      addTo(env, length, count);
    }
  }
  return length;
}

}  // namespace

void checkDType(Napi::Env env, DType dtype, bool onHost) {
  const bool known = onHost ? !isFloat8(dtype) : isOnGpus(dtype);
  if (known) return;
  throw argumentError(env, "dtype", onHost ? "a type of the host" : "a type of GPUs",
                      nameOf(dtype));
}

Napi::Array heldListOf(const Napi::Value& value, const char* name, std::size_t length) {
  const Napi::Array list = arrayArg(value, name);
  if (list.Length() == length) return list;
  throw argumentError(value.Env(), name,
                      "one entry for each of the " + std::to_string(length) + " held ranks",
                      std::to_string(list.Length()));
}

CallParts::CallParts(const Shape& shape, const GivenArguments& given) {
  const bool onHost = given.side.gpus.empty();
  const bool weighs = shape.kind == Kind::neighborAllReduce;
  checkDType(given.info.Env(), shape.dtype, onHost || weighs);
  if (weighs) {
    readNeighborhoods(given);
  } else if (isCounted(shape.kind)) {
    readCounted(shape, given);
  } else if (shape.kind == Kind::neighborAllGather) {
    readGathers(shape, given);
  } else if (shape.kind == Kind::pairGossip) {
    readPairs(shape, given);
  } else {
    readMessages(given);
  }
}

void CallParts::readNeighborhoods(const GivenArguments& given) {
  const Napi::Array list = heldListOf(given.more, "neighborhoods", given.side.held());
  const int size = given.side.communicator.size();
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Object from = objectArg(list.Get(i), "neighborhood");
    Neighborhood& one = neighborhoods.emplace_back();
    one.selfWeight = numberArg(from.Get("selfWeight"), "selfWeight");
    one.sources = neighborsArg(from.Get("sourceRanks"), from.Get("sourceWeights"), "sources", size);
    one.destinations = neighborsArg(from.Get("destinationRanks"), from.Get("destinationWeights"),
                                    "destinations", size);
    one.divisor = countArg(from.Get("divisor"), "divisor");
    if (one.divisor == 0) throw argumentError(list.Env(), "divisor", "1 or more", "0");
    one.check = booleanArg(from.Get("check"), "check");
  }
}

void CallParts::readGathers(const Shape& shape, const GivenArguments& given) {
  const Napi::Env env = given.info.Env();
  const std::span<const int> ranks = given.side.communicator.heldRanks();
  const int size = given.side.communicator.size();
  const Napi::Array data = heldListOf(given.info[1], "data", ranks.size());
  const Napi::Array out = heldListOf(given.info[2], "out", ranks.size());
  const Napi::Array lists = heldListOf(given.more, "lists", ranks.size());
  sources_.resize(ranks.size());
  destinations_.resize(ranks.size());
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    const Napi::Object from = objectArg(lists.Get(i), "list");
    const std::vector<int> senders = ranksArg(from.Get("sources"), "sources", size);
    const auto counts =
        countsOf(env, numbersArg(from.Get("counts"), "counts", senders.size()), senders.size());
    std::size_t total = 0;
    for (std::size_t s = 0; s < senders.size(); ++s) {
      sources_[i].push_back({senders[s], counts[s]});
      addTo(env, total, counts[s]);
    }
    destinations_[i] = ranksArg(from.Get("destinations"), "destinations", size);
    const int device = given.side.deviceOf(i);
    const BufferView view = viewOn(device, data.Get(i), shape.dtype, "data");
    gathers.push_back({ranks[i], view.data, view.length,
                       memoryOf(out.Get(i), shape.dtype, total, "out", device), sources_[i],
                       destinations_[i]});
    keepBoth(given, data.Get(i), out.Get(i));
  }
}

void CallParts::readPairs(const Shape& shape, const GivenArguments& given) {
  const Napi::Array list = someOf(given.more, "pairs");
  const Napi::Array data = arrayArg(given.info[1], "data");
  const Napi::Array out = arrayArg(given.info[2], "out");
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Object from = objectArg(list.Get(i), "pair");
    const std::size_t held = heldArg(from, given.side);
    const int device = given.side.deviceOf(held);
    const BufferView view = viewOn(device, data.Get(i), shape.dtype, "data");
    pairs.push_back({held, peerArg(from, given.side), view.data,
                     memoryOf(out.Get(i), shape.dtype, view.length, "out", device), view.length,
                     numberArg(from.Get("selfWeight"), "selfWeight"),
                     numberArg(from.Get("pairWeight"), "pairWeight")});
    keepBoth(given, data.Get(i), out.Get(i));
  }
}

void CallParts::readMessages(const GivenArguments& given) {
  const Napi::Array list = someOf(given.more, "messages");
  const Napi::Array sent = arrayArg(given.info[1], "data");
  const Napi::Array received = arrayArg(given.info[2], "out");
  std::uint32_t nextSent = 0;
  std::uint32_t nextReceived = 0;
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Object from = objectArg(list.Get(i), "message");
    const std::size_t held = heldArg(from, given.side);
    const bool sends = booleanArg(from.Get("sends"), "sends");
    const DType dtype = gpuDTypeArg(from.Get("dtype"));
    const Napi::Value data = sends ? sent.Get(nextSent++) : received.Get(nextReceived++);
    const BufferView view = viewOn(given.side.deviceOf(held), data, dtype, "data");
    messages.push_back({held, peerArg(from, given.side), 0, sends, dtype, view.length, view.data});
    if (given.kept != nullptr) keep(*given.kept, data);
  }
}

void CallParts::readCounted(const Shape& shape, const GivenArguments& given) {
  const Napi::Env env = given.info.Env();
  const std::size_t held = given.side.held();
  const auto size = static_cast<std::size_t>(given.side.communicator.size());
  const Napi::Array input = heldListOf(given.info[1], "data", held);
  const Napi::Array output = heldListOf(given.info[2], "out", held);
  const Napi::Object counts = objectArg(given.more, "counts");
  const double* const sent = numbersArg(counts.Get("sent"), "sent", held * size);
  const bool knows = !counts.Get("expected").IsNull();
  const double* const expected =
      knows ? numbersArg(counts.Get("expected"), "expected", held * size) : nullptr;
  made_.resize(held);
  for (std::uint32_t i = 0; i < held; ++i) {
    CountedPart& part = counted.parts.emplace_back();
    part.sent = countsOf(env, sent + i * size, size);
    if (knows) part.expected = countsOf(env, expected + i * size, size);
    // The engine takes one length for all ranks.
    if (shape.kind == Kind::allGatherV &&
        std::any_of(part.sent.begin(), part.sent.end(),
                    [&](std::size_t count) { return count != part.sent.front(); })) {
      throw argumentError(env, "sent", "one count for all ranks", "others");
    }
    const int device = given.side.deviceOf(i);
    const std::size_t length = lengthOf(env, shape.kind, part.sent);
    if (length > 0) part.in = memoryOf(input.Get(i), shape.dtype, length, "data", device);
    part.hasPlace = !output.Get(i).IsNull();
    if (part.hasPlace) {
      const BufferView view = viewOn(device, output.Get(i), shape.dtype, "out");
      part.out = view.data;
      part.capacity = view.length;
    }
    keepBoth(given, input.Get(i), output.Get(i));
  }
  counted.makePlace = [this, shape, onHost = given.side.gpus.empty()](std::size_t part,
                                                                      std::size_t elements) {
    return makePlace(shape, onHost, part, elements);
  };
}

void* CallParts::makePlace(const Shape& shape, bool onHost, std::size_t part,
                           std::size_t elements) {
  const char* const op = nameOf(shape.kind);
  if (!onHost) throw misuse(op, "ranks on GPUs need out");
  const std::size_t bytes = elements * sizeOf(shape.dtype);
  requireMemory(op, bytes);
  constexpr std::size_t kLine = 64;
  const std::size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kLine;
  // aligned_alloc needs a multiple of the alignment.
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, std::max(bytes, kLine)) != 0) {
    throw harmless(ErrorCode::outOfMemory, op, "no memory for " + std::to_string(bytes) + " bytes");
  }
  adviseHugePages(memory, bytes);
  made_[part] = std::shared_ptr<void>(memory, std::free);
  return memory;
}

Napi::Value CallParts::result(Napi::Env env, const Shape& shape) const {
  if (!isCounted(shape.kind)) return env.Undefined();
  const std::vector<CountedPart>& parts = counted.parts;
  const std::size_t size = parts.front().counts.size();
  Napi::Float64Array counts = Napi::Float64Array::New(env, parts.size() * size);
  const Napi::Array made = Napi::Array::New(env, parts.size());
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    for (std::size_t r = 0; r < size; ++r) {
      counts[i * size + r] = static_cast<double>(parts[i].counts[r]);
    }
    const auto& memory = made_[i];
    made.Set(i, memory ? arrayBufferOver(env, memory, memory.get(),
                                         parts[i].got * sizeOf(shape.dtype), nameOf(shape.kind))
                       : env.Null());
  }
  Napi::Object object = Napi::Object::New(env);
  object.Set("counts", counts);
  object.Set("made", made);
  return object;
}

}  // namespace gradlink::binding
