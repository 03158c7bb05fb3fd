// A server with workers that send whatever chance says: right headers with some fields changed,
// payloads of all kinds and lengths. It ends with an error that has a code, or when all have left;
// sanitizers look on.
#include <deque>

#include "kvstore/protocol/piece_rows.h"
#include "test/chance.h"
#include "test/kvstore/server/support.h"
#include "test/kvstore/support.h"

namespace gradlink::test {
namespace {

constexpr int kWorkers = 2;

/// What was sent beforehand, to a server alone in its thread. What it answers is received at once.
class ScriptedWire final : public Wire {
 public:
  void say(int worker, const Header& header, std::vector<std::byte> payload) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    script_.push_back({worker, {bytes, bytes + sizeof(header)}, std::move(payload)});
  }
  /// Cuts or lengthens the last header.
  void resizeHeader(std::size_t bytes) { script_.back().header.resize(bytes); }

  int rank() const override { return kWorkers; }
  int size() const override { return kWorkers + 1; }
  const char* backend() const override { return "script"; }
  bool sharesMemoryWith(int) const override { return true; }
  void* allocate(std::size_t bytes) override {
    // A system has no end of memory, a machine has.
    if (bytes > kMostBytes) throw Error(ErrorCode::outOfMemory, "too much");
    auto memory = std::make_unique<std::byte[]>(bytes);
    void* const at = memory.get();
    memory_[at] = std::move(memory);
    return at;
  }
  void deallocate(void* memory) override { memory_.erase(memory); }
  void send(int, std::span<const std::byte>, const void*, std::size_t,
            std::uint64_t ticket) override {
    if (ticket != 0) tickets_.push_back(ticket);
  }
  void release(std::uint64_t token) override { EXPECT_EQ(open_.erase(token), 1u); }
  void poll(WireEvents& events, Deadline) override {
    events.sent = std::exchange(tickets_, {});
    if (next_ == script_.size()) {
      // Who still waits for another then is ended, as by a deadline.
      if (++after_ == 1) events.left = {0, 1};
      if (after_ == 4) events.lost = {0, 1};
      return;
    }
    const Sent& sent = script_[next_++];
    const auto* const payload = sent.payload.empty() ? nullptr : sent.payload.data();
    open_[next_] = true;
    events.messages.push_back({sent.worker, sent.header, payload, sent.payload.size(), next_});
  }
  bool pollSleeps() const override { return false; }
  void wake() override {}
  std::vector<std::uint64_t> bytesSent() const override { return {}; }
  std::vector<std::uint64_t> bytesReceived() const override { return {}; }
  void close(Deadline) override {}

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  struct Sent {
    int worker;
    std::vector<std::byte> header;
    std::vector<std::byte> payload;
  };
  std::deque<Sent> script_;
  std::size_t next_ = 0;
  int after_ = 0;
  std::map<void*, std::unique_ptr<std::byte[]>> memory_;
  std::map<std::uint64_t, bool> open_;
  std::vector<std::uint64_t> tickets_;
};

constexpr std::uint64_t kBoundaries[] = {1 << 8,
                                         1 << 16,
                                         1 << 26,
                                         std::uint64_t{1} << 32,
                                         std::uint64_t{1} << 62,
                                         std::uint64_t{1} << 63,
                                         0};

template <class T>
std::vector<std::byte> bytesOf(const std::vector<T>& values) {
  const auto span = std::as_bytes(std::span(values));
  return {span.begin(), span.end()};
}

constexpr std::size_t kElements[] = {1, 100, (std::size_t{256} << 10) / sizeof(float) + 5};

std::vector<std::byte> encodedOptimizer(Chance& chance) {
  return bytesOf(saveStates(*optimizerOf(chance.oneIn(2) ? "sgd" : "adam", {{"learningRate", 0.1}}),
                            {}, true));
}

std::vector<std::byte> payloadFor(Chance& chance, const Header& header) {
  switch (header.type) {
    case MessageType::setOptimizer:
    case MessageType::loadStates:
      return chance.oneIn(4) ? std::vector<std::byte>() : encodedOptimizer(chance);
    case MessageType::setLearningRate:
      return chance.bytes(sizeof(double));
    case MessageType::setCompression:
      return bytesOf(std::vector<dist::CompressionTerms>{
          {static_cast<std::uint32_t>(chance.below(6)), chance.oneIn(3) ? -1.0f : 0.5f}});
    case MessageType::pullRows:
      return bytesOf(std::vector<dist::ShardRun>(1 + chance.below(3),
                                                 {chance.below(120), 1 + chance.below(9)}));
    case MessageType::push:
      if (dist::isOfRows(header.encoding)) {
        std::vector<std::byte> rows = bytesOf(std::vector<std::uint64_t>{1});
        const auto run = bytesOf(
            std::vector<dist::ElementRun>{{static_cast<std::uint32_t>(chance.below(99)), 1}});
        rows.insert(rows.end(), run.begin(), run.end());
        rows.resize(rows.size() + sizeof(float));
        return rows;
      }
      [[fallthrough]];
    case MessageType::init:
      return chance.bytes(std::min<std::size_t>(header.count, kElements[2]) * sizeof(float));
    default:
      return chance.bytes(chance.below(20));
  }
}

void sayOne(Chance& chance, ScriptedWire& wire, std::uint64_t round) {
  const int worker = static_cast<int>(chance.below(kWorkers));
  Header header{static_cast<MessageType>(chance.below(15))};
  header.shard = static_cast<std::uint32_t>(chance.below(3));
  const std::size_t elements = kElements[header.shard];
  const std::size_t step = dist::pieceElements(DType::float32);
  const bool defines = header.type == MessageType::define;
  header.piece = elements > step ? static_cast<std::uint32_t>(chance.below(2)) : 0;
  header.count = defines ? elements : std::min(step, elements - header.piece * step);
  header.round = defines ? 0 : round;
  header.request = defines ? 1 : 1 + chance.below(100);
  header.flags = defines ? 0 : static_cast<std::uint8_t>(chance.below(8));
  if (header.type == MessageType::push) {
    header.encoding = static_cast<dist::Encoding>(chance.oneIn(3) ? chance.below(9) : 0);
  }
  std::vector<std::byte> payload = payloadFor(chance, header);
  if (chance.oneIn(6)) {
    const std::function<void()> changes[] = {
        [&] { header.type = static_cast<MessageType>(chance.below(256)); },
        [&] { header.encoding = static_cast<dist::Encoding>(chance.below(256)); },
        [&] { header.dtype = static_cast<DType>(chance.below(256)); },
        [&] { header.flags = static_cast<std::uint8_t>(chance.below(256)); },
        [&] { header.shard = static_cast<std::uint32_t>(chance.number(kBoundaries)); },
        [&] { header.piece = static_cast<std::uint32_t>(chance.number(kBoundaries)); },
        [&] { header.count = chance.number(kBoundaries); },
        [&] { header.round = chance.number(kBoundaries); },
        [&] { header.request = chance.number(kBoundaries); },
        [&] { payload.resize(chance.below(payload.size() + 20)); },
        [&] {
          if (!payload.empty()) payload[chance.below(payload.size())] ^= std::byte{1};
        }};
    changes[chance.below(std::size(changes))]();
  }
  wire.say(worker, header, std::move(payload));
  if (chance.oneIn(200)) wire.resizeHeader(chance.below(64));
}

/// How many of these servers ended in good order.
int serveScripts(std::uint64_t seed, int scripts) {
  int well = 0;
  for (int i = 0; i < scripts; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed + static_cast<std::uint64_t>(i)));
    Chance chance(seed + static_cast<std::uint64_t>(i));
    auto wire = std::make_unique<ScriptedWire>();
    for (std::uint32_t shard = 0; shard < 3; ++shard) {
      Header header{MessageType::define};
      header.shard = shard;
      header.count = kElements[shard];
      header.request = 1;
      wire->say(0, header, bytesOf(std::vector<char>{static_cast<char>('a' + shard)}));
    }
    const std::uint64_t messages = 1 + chance.below(30);
    for (std::uint64_t m = 0; m < messages; ++m) sayOne(chance, *wire, 1 + m / 8);
    ServerOptions options = serverOf(kWorkers);
    options.asynchronous = chance.oneIn(2);
    try {
      serve(std::move(wire), options);
      ++well;
    } catch (const Error&) {
      // Whoever waits is told why.
    }
  }
  return well;
}

constexpr std::uint64_t kSeed = 1;

TEST(ServerFuzz, EndsWithAnErrorOrInGoodOrder) {
  const int well = serveScripts(kSeed, 300);
  // Scripts that get far, and scripts that are refused.
  EXPECT_GT(well, 10);
  EXPECT_LT(well, 290);
}

/// More than a million messages in all.
class SlowServerFuzz : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Parts, SlowServerFuzz,
                         testing::Range(std::uint64_t{0}, std::uint64_t{10}));

TEST_P(SlowServerFuzz, EndsWithAnErrorOrInGoodOrder) {
  EXPECT_GT(serveScripts(attackSeed() + GetParam() * 1000000, 7000), 0);
}

}  // namespace
}  // namespace gradlink::test
