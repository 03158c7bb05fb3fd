#include "kvstore/gpu/round.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/kernels/copy_bytes.h"
#include "kvstore/base/rows.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

using Stage = GpuCollectives::Stage;

cuda::CodeBits bitsOf(const GradientCompression& compression) {
  return compression.type() == CompressionType::twoBit ? cuda::CodeBits::two : cuda::CodeBits::one;
}

}  // namespace

GpuRound::GpuRound(GpuPlaces& places, const GradientCompression* compression,
                   GpuCollectives* collectives)
    : places_(places), compression_(compression), collectives_(collectives), work_(places.size()) {}

// ---- units

void GpuRound::addPush(GpuUnit& unit) {
  GpuKey& key = unit.key();
  key.copiesCurrent = false;
  if (key.count == 0) {
    // Of no elements, but it is written with the others.
    if (unit.head().state) makeState(key, *unit.head().state, places_[key.owner]);
    return;
  }
  if (share(unit)) return;
  if (fromHost(unit)) {
    work_[key.owner].arriving.push_back(
        {{key.value.data(), key.owner}, unit.in.front(), key.bytes()});
    return addPull(unit);
  }
  cuda::Sources sources = sourcesOf(unit);
  cuda::Targets targets = targetsOf(unit, unit.out);
  if (unit.head().state) return addUpdate(unit, std::move(sources), std::move(targets));
  targets.push_back(key.value.data());
  addSums(key.owner, key.dtype, {std::move(sources), std::move(targets), key.count});
}

void GpuRound::addPull(GpuUnit& unit) {
  GpuKey& key = unit.key();
  if (key.count == 0) return;
  if (key.copiesCurrent && collectives_ != nullptr) return pullCopies(unit);
  if (unit.in.empty() && share(unit)) return;
  addSums(key.owner, key.dtype,
          {cuda::Sources({key.value.data()}, &memory_), targetsOf(unit, unit.out), key.count});
}

/// Each place has the value.
void GpuRound::pullCopies(GpuUnit& unit) {
  GpuKey& key = unit.key();
  std::vector<cuda::Targets> targets(places_.size());
  for (const GpuArray& out : unit.out) {
    if (out.place == kHostPlace) {
      leave(unit, out, key.value.data());
    } else {
      targets[out.place].push_back(out.data);
    }
  }
  for (std::size_t place = 0; place < places_.size(); ++place) {
    addSums(place, key.dtype, {{key.valueOn(place)}, std::move(targets[place]), key.count});
  }
}

void* GpuRound::addSum(GpuUnit& unit) {
  GpuKey& key = unit.key();
  void* const sum = places_[key.owner].arena.take(key.bytes());
  if (key.count != 0) addSums(key.owner, key.dtype, {sourcesOf(unit), {sum}, key.count});
  return sum;
}

bool GpuRound::fromHost(const GpuUnit& unit) const {
  return unit.kind() == OperationKind::init && unit.in.front().place == kHostPlace;
}

cuda::Sources GpuRound::sourcesOf(GpuUnit& unit) {
  GpuKey& key = unit.key();
  if (compression_ != nullptr && key.dtype == DType::float32 && isPush(unit.kind())) {
    return decoded(unit);
  }
  cuda::Sources sources(&memory_);
  sources.reserve(unit.in.size());
  for (std::size_t i = 0; i < unit.in.size(); ++i) {
    const GpuArray in = uploaded(unit, i);
    if (places_.reaches(key.owner, in.place)) {
      sources.push_back(in.data);
      continue;
    }
    void* const copy = places_[key.owner].arena.take(key.bytes());
    work_[key.owner].arriving.push_back({{copy, key.owner}, in, key.bytes()});
    sources.push_back(copy);
  }
  return sources;
}

/// The unit's i-th array, on the owner where it was on the host. The devices read page-locked
/// memory: from any other the driver copies in its own time, and keeps whoever asks waiting.
GpuArray GpuRound::uploaded(GpuUnit& unit, std::size_t index) {
  const GpuArray& in = unit.in[index];
  if (in.place != kHostPlace) return in;
  GpuKey& key = unit.key();
  void* const staged = key.room(index);
  if (staged != in.data) copyBytes(staged, in.data, key.bytes());
  const GpuArray copy{places_[key.owner].arena.take(key.bytes()), key.owner};
  work_[key.owner].uploads.push_back({copy, {staged, kHostPlace}, key.bytes()});
  return copy;
}

/// Each array becomes codes where it is; what they mean is summed at the owner.
cuda::Sources GpuRound::decoded(GpuUnit& unit) {
  GpuKey& key = unit.key();
  compresses_ = true;
  const std::size_t codeBytes = cuda::codeBytes(bitsOf(*compression_), key.count);
  cuda::Sources sources(&memory_);
  for (std::size_t i = 0; i < unit.in.size(); ++i) {
    const GpuArray in = uploaded(unit, i);
    auto* codes = static_cast<std::uint8_t*>(places_[in.place].arena.take(codeBytes));
    work_[in.place].compress.push_back(
        {static_cast<const float*>(in.data), residualOf(key, i, in.place), codes, key.count});
    if (!places_.reaches(key.owner, in.place)) {
      auto* copy = static_cast<std::uint8_t*>(places_[key.owner].arena.take(codeBytes));
      work_[key.owner].arriving.push_back({{copy, key.owner}, {codes, in.place}, codeBytes});
      codes = copy;
    }
    auto* meaning = static_cast<float*>(places_[key.owner].arena.take(key.bytes()));
    work_[key.owner].decompress.push_back({codes, meaning, key.count});
    sources.push_back(meaning);
  }
  return sources;
}

/// What the codes of the key's i-th array left over so far, on that array's GPU.
float* GpuRound::residualOf(GpuKey& key, std::size_t index, std::size_t at) {
  GpuPlace& place = places_[at];
  while (key.residuals.size() <= index) key.residuals.emplace_back();
  cuda::DeviceMemory& residual = key.residuals[index];
  if (residual.data() == nullptr) {
    residual = cuda::DeviceMemory(place.device, key.bytes());
    place.stream.zero(residual.data(), key.bytes());
  } else if (residual.device() != &place.device) {
    // The caller pushes from another GPU than before: rare enough to stand still for.
    places_.quiesce();
    cuda::DeviceMemory moved(place.device, key.bytes());
    const std::size_t from = places_.indexOf(residual.device()->ordinal());
    const GpuCopy copy{{moved.data(), at}, {residual.data(), from}, key.bytes()};
    places_.copy(at, {&copy, 1});
    place.stream.synchronize();
    residual = std::move(moved);
  }
  return static_cast<float*>(residual.data());
}

cuda::Targets GpuRound::targetsOf(GpuUnit& unit, const std::vector<GpuArray>& outputs) {
  GpuKey& key = unit.key();
  cuda::Targets targets(&memory_);
  targets.reserve(outputs.size() + 1);  // a push's value is the last
  for (const GpuArray& out : outputs) {
    if (out.place != kHostPlace && places_.reaches(key.owner, out.place)) {
      targets.push_back(out.data);
    } else {
      leave(unit, out, key.value.data());
    }
  }
  return targets;
}

/// A copy from the owner, when its kernels are done. One arrival serves all outputs on the host.
void GpuRound::leave(GpuUnit& unit, GpuArray out, void* from) {
  GpuKey& key = unit.key();
  std::vector<GpuCopy>& leaving = work_[key.owner].leaving;
  if (out.place != kHostPlace) return leaving.push_back({out, {from, key.owner}, key.bytes()});
  void* const staged = key.room(unit.in.size());
  if (unit.landings.empty()) {
    leaving.push_back({{staged, kHostPlace}, {from, key.owner}, key.bytes()});
  }
  unit.landings.push_back({out.data, staged});
}

void GpuRound::addUpdate(GpuUnit& unit, cuda::Sources grads, cuda::Targets targets) {
  GpuKey& key = unit.key();
  KeyState& state = *unit.head().state;
  makeState(key, state, places_[key.owner]);
  cuda::StepTask task = stepOf(key, unit.head());
  task.grads = std::move(grads);
  task.targets = std::move(targets);
  work_[key.owner].steps[stepKindOf(key, *state.optimizer)].push_back(std::move(task));
}

void GpuRound::addSums(std::size_t place, DType dtype, cuda::SumTask task) {
  if (!task.targets.empty()) work_[place].sums[dtype].push_back(std::move(task));
}

// ---- with NCCL

/// Hands the unit's part to NCCL where it has an array on every GPU.
bool GpuRound::share(GpuUnit& unit) {
  if (collectives_ == nullptr || unit.kind() == OperationKind::init) return false;
  GpuKey& key = unit.key();
  if (isPush(unit.kind()) && compression_ != nullptr && key.dtype == DType::float32) return false;
  Shared shared{&unit, nullptr, nullptr, false, {}, {}};
  const bool spreads = splitOutputs(unit, shared);
  KeyCollective part{Stage::before, Kind::reduce, key.dtype, key.count, key.owner, {}, {}};
  part.in.resize(places_.size());
  part.out.resize(places_.size());
  part.whole = key.whole;
  part.index = key.part;
  if (isPush(unit.kind())) {
    std::optional<std::vector<const void*>> inputs = inputByPlace(unit);
    if (!inputs) return false;
    KeyCollective sum = part;
    sum.in = std::move(*inputs);
    if (unit.head().state) {
      sum.out[key.owner] = places_[key.owner].arena.take(key.bytes());
    } else if (spreads) {
      sum.kind = Kind::allReduce;
      sum.out = shared.filled;
    } else if (makeCopies(key)) {
      // Later pulls then move nothing between the GPUs: a reduction to the owner and a broadcast
      // from it take every link for all of the value twice, an all-reduce for 2(n-1)/n of it.
      shared.keeps = true;
      sum.kind = Kind::allReduce;
      for (std::size_t place = 0; place < places_.size(); ++place) {
        shared.filled.push_back(key.valueOn(place));
      }
      sum.out = shared.filled;
    } else {
      sum.out[key.owner] = key.value.data();
    }
    shared.sum = &collectives_->add(std::move(sum));
  } else if (!spreads) {
    return false;
  }
  if (spreads && (shared.sum == nullptr || unit.head().state)) {
    part.kind = Kind::broadcast;
    part.stage = shared.sum == nullptr ? Stage::before : Stage::after;
    part.in[key.owner] = key.value.data();
    part.out = shared.filled;
    shared.spread = &collectives_->add(std::move(part));
  }
  shared_.push_back(std::move(shared));
  return true;
}

/// Memory for the value on every place. A store whose keys are cut has each part in one place.
bool GpuRound::makeCopies(GpuKey& key) {
  if (key.whole != nullptr || key.copiesLack) return false;
  if (!key.copies.empty()) return true;
  std::vector<cuda::DeviceMemory> copies(places_.size());
  try {
    for (std::size_t place = 0; place < places_.size(); ++place) {
      if (place == key.owner) continue;
      copies[place] = cuda::DeviceMemory(places_[place].device, key.bytes());
    }
  } catch (const Error& error) {
    if (error.code != ErrorCode::outOfMemory) throw;
    key.copiesLack = true;
    return false;
  }
  key.copies = std::move(copies);
  return true;
}

const GpuCollectives::KeyCollective* GpuRound::shareSum(GpuUnit& unit) {
  GpuKey& key = unit.key();
  if (collectives_ == nullptr || key.count == 0) return nullptr;
  std::optional<std::vector<const void*>> inputs = inputByPlace(unit);
  if (!inputs) return nullptr;
  KeyCollective sum{Stage::before, Kind::reduce,       key.dtype, key.count,
                    key.owner,     std::move(*inputs), {}};
  sum.out.resize(places_.size());
  sum.out[key.owner] = places_[key.owner].arena.take(key.bytes());
  return &collectives_->add(std::move(sum));
}

std::optional<std::vector<const void*>> GpuRound::inputByPlace(const GpuUnit& unit) const {
  std::vector<const void*> inputs(places_.size());
  if (unit.in.size() != inputs.size()) return std::nullopt;
  for (const GpuArray& in : unit.in) {
    if (in.place == kHostPlace) return std::nullopt;
    inputs[in.place] = in.data;
  }
  const bool all = std::find(inputs.begin(), inputs.end(), nullptr) == inputs.end();
  return all ? std::optional(std::move(inputs)) : std::nullopt;
}

/// One output of every place, if there are, and the rest.
bool GpuRound::splitOutputs(const GpuUnit& unit, Shared& shared) const {
  std::vector<void*> filled(places_.size());
  for (const GpuArray& out : unit.out) {
    if (out.place != kHostPlace && filled[out.place] == nullptr) {
      filled[out.place] = out.data;
    } else {
      shared.others.push_back(out);
    }
  }
  if (std::find(filled.begin(), filled.end(), nullptr) != filled.end()) {
    shared.others = unit.out;
    return false;
  }
  shared.filled = std::move(filled);
  return true;
}

/// What the places themselves have to do for a unit, once it is known where the collectives work.
void GpuRound::finishShared(Shared& shared) {
  GpuUnit& unit = *shared.unit;
  GpuKey& key = unit.key();
  cuda::Targets targets = targetsOf(unit, shared.others);
  if (shared.spread != nullptr && shared.spread->packed) {
    unpack(shared, *shared.spread,
           shared.spread->stage == Stage::before ? &Work::sums : &Work::unpacking);
  }
  if (shared.sum == nullptr) {
    return addSums(key.owner, key.dtype, {{key.value.data()}, std::move(targets), key.count});
  }
  const void* const sum = shared.sum->result(key.owner);
  if (unit.head().state) {
    if (shared.spread != nullptr && shared.spread->packed) {
      targets.push_back(shared.spread->result(key.owner));
    }
    return addUpdate(unit, {sum}, std::move(targets));
  }
  if (shared.sum->kind == Kind::allReduce && shared.sum->packed) {
    unpack(shared, *shared.sum, &Work::sums);
  }
  // The copies have been unpacked with the value.
  if (sum != key.value.data() && !shared.keeps) targets.push_back(key.value.data());
  addSums(key.owner, key.dtype, {{sum}, std::move(targets), key.count});
}

void GpuRound::unpack(const Shared& shared, const KeyCollective& part, GpuSums Work::*when) {
  for (std::size_t place = 0; place < places_.size(); ++place) {
    (work_[place].*when)[part.dtype].push_back(
        {{part.result(place)}, {shared.filled[place]}, part.count});
  }
}

// ---- launching

void GpuRound::launch() {
  if (collectives_ != nullptr) {
    std::vector<GpuSums> packing(places_.size());
    collectives_->resolve(packing);
    for (std::size_t place = 0; place < places_.size(); ++place) {
      work_[place].packing = std::move(packing[place]);
    }
    for (Shared& shared : shared_) finishShared(shared);
  }
  for (std::size_t place = 0; place < places_.size(); ++place) {
    places_.copy(place, work_[place].uploads);
  }
  if (compresses_) compressAll();
  for (std::size_t place = 0; place < places_.size(); ++place) {
    places_.copy(place, work_[place].arriving);
    if (!work_[place].decompress.empty()) {
      cuda::decompress(places_[place].stream, places_[place].ring, bitsOf(*compression_),
                       compression_->threshold(), work_[place].decompress);
    }
    launchSums(place, work_[place].packing);
  }
  if (collectives_ != nullptr && collectives_->has(Stage::before)) {
    collectives_->launch(Stage::before);
  }
  for (std::size_t place = 0; place < places_.size(); ++place) {
    for (const Zero& zero : work_[place].zeros) places_[place].stream.zero(zero.to, zero.bytes);
    compute(place);
  }
  if (collectives_ != nullptr && collectives_->has(Stage::after)) {
    collectives_->launch(Stage::after);
  }
  for (std::size_t place = 0; place < places_.size(); ++place) {
    launchSums(place, work_[place].unpacking);
    places_.copy(place, work_[place].leaving);
  }
  for (const Shared& shared : shared_) {
    if (shared.keeps) shared.unit->key().copiesCurrent = true;
  }
}

/// Codes everywhere; then every place may read those of the others.
void GpuRound::compressAll() {
  GpuMarks coded(places_.events(), 0);
  for (std::size_t place = 0; place < places_.size(); ++place) {
    if (work_[place].compress.empty()) continue;
    cuda::compress(places_[place].stream, places_[place].ring, bitsOf(*compression_),
                   compression_->threshold(), work_[place].compress);
    coded.add(places_[place].stream);
  }
  for (std::size_t place = 0; place < places_.size(); ++place) {
    coded.holdUp(places_[place].stream);
  }
}

void GpuRound::compute(std::size_t place) {
  launchSums(place, work_[place].sums);
  for (const auto& [kind, tasks] : work_[place].steps) {
    cuda::step(places_[place].stream, places_[place].ring, kind.dtype, kind.kernel, kind.ratio,
               tasks);
  }
}

void GpuRound::launchSums(std::size_t place, const GpuSums& sums) {
  GpuPlace& at = places_[place];
  for (const auto& [dtype, tasks] : sums) {
    cuda::sum(at.stream, at.ring, dtype, tasks);
  }
}

// ---- rows alone: what is pulled of a value, and what a lazy optimizer steps

void GpuRound::addRows(GpuUnit& unit) {
  GpuKey& key = unit.key();
  if (key.count == 0) return;
  const std::size_t rowBytes = key.rowLength * sizeOf(key.dtype);
  std::vector<std::int64_t> rows = unit.head().operation->rows;
  sortEachOnce(rows);
  Work& work = work_[key.owner];
  for (const GpuArray& out : unit.out) {
    // All of the output is written anyway: elsewhere it arrives as one copy.
    void* const image =
        out.place == key.owner ? out.data : places_[key.owner].arena.take(key.bytes());
    work.zeros.push_back({image, key.bytes()});
    forEachRun(rows, [&](std::size_t first, std::size_t count, std::size_t /*at*/) {
      const std::size_t at = first * rowBytes;
      addSums(key.owner, key.dtype,
              {{static_cast<const std::byte*>(key.value.data()) + at},
               {static_cast<std::byte*>(image) + at},
               count * key.rowLength});
    });
    if (image != out.data) leave(unit, out, image);
  }
}

void GpuRound::addRowUpdate(GpuUnit& unit) {
  GpuKey& key = unit.key();
  key.copiesCurrent = false;
  KeyState& state = *unit.head().state;
  makeState(key, state, places_[key.owner]);
  if (key.count == 0) return;
  const std::size_t size = sizeOf(key.dtype);
  const std::size_t bytes = unit.touched.rows.size() * key.rowLength * size;
  if (bytes == 0) return;
  void* const staged = key.room(0, bytes);
  copyBytes(staged, unit.touched.data.data(), bytes);
  const GpuArray rows{places_[key.owner].arena.take(bytes), key.owner};
  work_[key.owner].uploads.push_back({rows, {staged, kHostPlace}, bytes});

  const cuda::StepTask whole = stepOf(key, unit.head());
  const auto shifted = [](void* array, std::size_t by) -> void* {
    return array == nullptr ? nullptr : static_cast<std::byte*>(array) + by;
  };
  auto& steps = work_[key.owner].steps[stepKindOf(key, *state.optimizer)];
  forEachRun(unit.touched.rows, [&](std::size_t row, std::size_t count, std::size_t at) {
    const std::size_t first = row * key.rowLength;
    cuda::StepTask task = whole;
    task.grads = {shifted(rows.data, at * key.rowLength * size)};
    task.weight = shifted(whole.weight, first * size);
    for (void*& array : task.states) array = shifted(array, first * sizeof(float));
    if (task.master != nullptr) task.master += first;
    task.count = count * key.rowLength;
    steps.push_back(std::move(task));
  });
}

}  // namespace gradlink
