// Format: magic, a payload of little-endian fields (in the order of the code below), the payload's
// FNV-1a hash. Strings and arrays follow their length as a 64-bit number.
#include <bit>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "kvstore/optimizer/optimizer.h"

namespace gradlink {

namespace {

static_assert(std::endian::native == std::endian::little,
              "state files are written in the machine's own order");

constexpr std::string_view kMagic = "gradlink optimizer states 1\n";
constexpr std::size_t kHashBytes = 8;

/// The format of a schedule. Before 0.3 it had no warm-up rate, which was the base rate.
enum class ScheduleForm : std::uint64_t { none = 0, withoutWarmupRate = 1, whole = 2 };

std::uint64_t hashOf(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint8_t byte : bytes) {
    hash = (hash ^ byte) * 0x100000001b3u;
  }
  return hash;
}

[[noreturn]] void rejectFile(const std::string& what) {
  throw Error(ErrorCode::invalidArgument, "not usable as optimizer states: " + what +
                                              "; expected a file that saveOptimizerStates wrote");
}

class Writer {
 public:
  void bytes(const void* data, std::size_t count) {
    const auto* from = static_cast<const std::uint8_t*>(data);
    out_.insert(out_.end(), from, from + count);
  }
  template <class T>
  void number(T value) {
    static_assert(sizeof(T) == 8);
    bytes(&value, sizeof value);
  }
  void text(const std::string& value) {
    number<std::uint64_t>(value.size());
    bytes(value.data(), value.size());
  }
  void numbers(const std::map<std::string, double>& values) {
    number<std::uint64_t>(values.size());
    for (const auto& [name, value] : values) {
      text(name);
      number(value);
    }
  }
  void reserve(std::size_t count) { out_.reserve(count); }
  std::vector<std::uint8_t> take() { return std::move(out_); }

 private:
  std::vector<std::uint8_t> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  void bytes(void* data, std::size_t count) {
    if (count > rest_.size()) {
      rejectFile("the file is cut short");
    }
    if (count > 0) {
      std::memcpy(data, rest_.data(), count);
    }
    rest_ = rest_.subspan(count);
  }
  template <class T>
  T number() {
    T value;
    bytes(&value, sizeof value);
    return value;
  }
  /// A length of items of at least `unit` bytes; at most what remains.
  std::size_t length(std::size_t unit) {
    const auto value = number<std::uint64_t>();
    if (value > rest_.size() / unit) {
      rejectFile("the file is cut short");
    }
    return static_cast<std::size_t>(value);
  }
  std::string text() {
    std::string value(length(1), '\0');
    bytes(value.data(), value.size());
    return value;
  }
  std::map<std::string, double> numbers() {
    std::map<std::string, double> values;
    for (std::size_t left = length(16); left > 0; --left) {
      const std::string name = text();
      values[name] = number<double>();
    }
    return values;
  }
  bool atEnd() const { return rest_.empty(); }

 private:
  std::span<const std::uint8_t> rest_;
};

void writeScheduler(Writer& out, const SchedulerSpec& spec) {
  out.number<std::uint64_t>(static_cast<std::uint64_t>(spec.kind));
  out.number<std::uint64_t>(static_cast<std::uint64_t>(spec.warmupMode));
  for (const double value : {spec.baseLr, spec.warmupBeginLr, spec.factor, spec.stopFactorLr,
                             spec.finalLr, spec.power}) {
    out.number(value);
  }
  out.number(spec.warmupSteps);
  out.number(spec.maxUpdate);
  out.number<std::uint64_t>(spec.steps.size());
  for (const std::int64_t step : spec.steps) {
    out.number(step);
  }
  out.number(spec.warmupFinalLr);
  // One for each step of a table, none in other schedules.
  for (const double rate : spec.rates) {
    out.number(rate);
  }
}

SchedulerSpec readScheduler(Reader& in, ScheduleForm form) {
  SchedulerSpec spec;
  const auto kind = in.number<std::uint64_t>();
  const auto mode = in.number<std::uint64_t>();
  if (kind > static_cast<std::uint64_t>(SchedulerKind::table) ||
      mode > static_cast<std::uint64_t>(WarmupMode::constant)) {
    rejectFile("it names an unknown schedule");
  }
  spec.kind = static_cast<SchedulerKind>(kind);
  spec.warmupMode = static_cast<WarmupMode>(mode);
  for (double* value : {&spec.baseLr, &spec.warmupBeginLr, &spec.factor, &spec.stopFactorLr,
                        &spec.finalLr, &spec.power}) {
    *value = in.number<double>();
  }
  spec.warmupSteps = in.number<std::int64_t>();
  spec.maxUpdate = in.number<std::int64_t>();
  spec.steps.resize(in.length(8));
  for (std::int64_t& step : spec.steps) {
    step = in.number<std::int64_t>();
  }
  spec.warmupFinalLr = form == ScheduleForm::whole ? in.number<double>() : spec.baseLr;
  if (spec.kind == SchedulerKind::table) {
    spec.rates.resize(spec.steps.size());
    for (double& rate : spec.rates) {
      rate = in.number<double>();
    }
  }
  return spec;
}

void writeSpec(Writer& out, const OptimizerSpec& spec) {
  out.numbers(spec.numbers);
  out.numbers(spec.lrMult);
  out.numbers(spec.wdMult);
  out.number<std::uint64_t>(spec.paramNames.size());
  for (const auto& [key, name] : spec.paramNames) {
    out.text(key);
    out.text(name);
  }
  const ScheduleForm form = spec.scheduler ? ScheduleForm::whole : ScheduleForm::none;
  out.number(static_cast<std::uint64_t>(form));
  if (spec.scheduler) {
    writeScheduler(out, *spec.scheduler);
  }
}

OptimizerSpec readSpec(Reader& in, const std::string& name) {
  OptimizerSpec spec;
  spec.name = name;
  spec.numbers = in.numbers();
  spec.lrMult = in.numbers();
  spec.wdMult = in.numbers();
  for (std::size_t left = in.length(16); left > 0; --left) {
    const std::string key = in.text();
    spec.paramNames[key] = in.text();
  }
  const auto form = in.number<std::uint64_t>();
  if (form > static_cast<std::uint64_t>(ScheduleForm::whole)) {
    rejectFile("it has a schedule of a later version");
  }
  if (form != static_cast<std::uint64_t>(ScheduleForm::none)) {
    spec.scheduler = readScheduler(in, static_cast<ScheduleForm>(form));
  }
  return spec;
}

void writeState(Writer& out, const OptimizerState& state) {
  out.text(state.key);
  out.number<std::uint64_t>(static_cast<std::uint64_t>(state.dtype));
  out.number<std::uint64_t>(state.count);
  out.number(state.updates);
  out.number(state.lastLearningRate);
  out.number<std::uint64_t>(state.arrays.size());
  for (const StateArray& array : state.arrays) {
    out.text(array.name);
    out.number<std::uint64_t>(static_cast<std::uint64_t>(array.dtype));
    out.number<std::uint64_t>(array.count);
    out.bytes(array.data.data(), array.data.size());
  }
}

DType readDType(Reader& in) {
  const auto dtype = in.number<std::uint64_t>();
  if (dtype >= static_cast<std::uint64_t>(kDTypeCount) || isFloat8(static_cast<DType>(dtype))) {
    rejectFile("it names an unknown element type");
  }
  return static_cast<DType>(dtype);
}

std::unique_ptr<OptimizerState> readState(Reader& in) {
  auto state = std::make_unique<OptimizerState>();
  state->key = in.text();
  state->dtype = readDType(in);
  state->count = static_cast<std::size_t>(in.number<std::uint64_t>());
  state->updates = in.number<std::int64_t>();
  state->lastLearningRate = in.number<double>();
  for (std::size_t left = in.length(24); left > 0; --left) {
    StateArray array;
    array.name = in.text();
    array.dtype = readDType(in);
    array.count = in.length(sizeOf(array.dtype));
    array.data = AlignedBuffer(array.count * sizeOf(array.dtype));
    in.bytes(array.data.data(), array.data.size());
    // An array of fewer elements has one for each row.
    if (array.count > 0 && array.count < state->count) {
      state->rowLength = state->count / array.count;
    }
    state->arrays.push_back(std::move(array));
  }
  return state;
}

}  // namespace

std::vector<std::uint8_t> saveStates(const Optimizer& optimizer,
                                     std::span<const OptimizerState* const> states,
                                     bool dumpOptimizer) {
  // Estimates the size: states can be as large as the model.
  std::size_t expected = 4096;
  for (const OptimizerState* state : states) {
    expected += 512;
    for (const StateArray& array : state->arrays) {
      expected += array.data.size();
    }
  }
  Writer out;
  out.reserve(expected);
  out.bytes(kMagic.data(), kMagic.size());
  out.text(optimizer.spec().name);
  out.number(optimizer.numUpdate());
  out.number<std::uint64_t>(dumpOptimizer ? 1 : 0);
  if (dumpOptimizer) {
    writeSpec(out, optimizer.spec());
  }
  out.number<std::uint64_t>(states.size());
  for (const OptimizerState* state : states) {
    writeState(out, *state);
  }
  std::vector<std::uint8_t> bytes = out.take();
  const std::uint64_t hash = hashOf(std::span(bytes).subspan(kMagic.size()));
  const auto* from = reinterpret_cast<const std::uint8_t*>(&hash);
  bytes.insert(bytes.end(), from, from + kHashBytes);
  return bytes;
}

LoadedStates loadStates(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kMagic.size() ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    rejectFile("it does not start like such a file");
  }
  if (bytes.size() < kMagic.size() + kHashBytes) {
    rejectFile("the file is cut short");
  }
  const auto payload = bytes.subspan(kMagic.size(), bytes.size() - kMagic.size() - kHashBytes);
  std::uint64_t hash;
  std::memcpy(&hash, bytes.data() + bytes.size() - kHashBytes, kHashBytes);
  if (hash != hashOf(payload)) {
    rejectFile("its checksum does not match, so it was cut short or altered");
  }
  Reader in(payload);
  LoadedStates loaded;
  loaded.optimizerName = in.text();
  loaded.numUpdate = in.number<std::int64_t>();
  if (in.number<std::uint64_t>() != 0) {
    loaded.spec = readSpec(in, loaded.optimizerName);
  }
  for (std::size_t left = in.length(48); left > 0; --left) {
    loaded.states.push_back(readState(in));
  }
  if (!in.atEnd()) {
    rejectFile("there is something after the last state");
  }
  return loaded;
}

}  // namespace gradlink
