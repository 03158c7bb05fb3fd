// A server's rounds: what it stores, whom it answers and when.
#include <gtest/gtest.h>

#include "kvstore/base/compression.h"
#include "kvstore/optimizer/optimizer.h"
#include "test/kvstore/server/support.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kServerPiece = dist::pieceElements(DType::float32);

std::vector<float> sawtooth(std::size_t count, float scale, float offset = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * static_cast<float>(i % 97) + offset;
  return values;
}

std::vector<std::uint8_t> encoded(const OptimizerSpec& spec) {
  return saveStates(*Optimizer::create(spec), {}, true);
}

/// Workers and pipelines.
class Rounds : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int workers() const { return std::get<0>(GetParam()); }
  ServerOptions options() const { return serverOf(workers(), std::get<1>(GetParam())); }
};

TEST_P(Rounds, StoreTheSumOfEachAndAnswerPullsOfIt) {
  const std::vector<std::size_t> counts = {1, 1000, kServerPiece, 2 * kServerPiece + 17};
  const auto run = served(options(), [&](HandWorker& worker) {
    for (std::uint32_t s = 0; s < counts.size(); ++s) {
      worker.define(s, "key " + std::to_string(s), DType::float32, counts[s]);
      if (worker.rank() == 0) worker.init(s, DType::float32, sawtooth(counts[s], 1));
    }
    for (std::uint32_t s = 0; s < counts.size(); ++s) {
      EXPECT_EQ(worker.pulled<float>(s, DType::float32, counts[s], 0), sawtooth(counts[s], 1));
    }
    for (std::uint64_t round = 1; round <= 5; ++round) {
      std::vector<std::uint64_t> requests;
      for (std::uint32_t s = 0; s < counts.size(); ++s) {
        const auto mine = sawtooth(counts[s], static_cast<float>(round), float(worker.rank()));
        const std::uint8_t flags = round % 2 == 0 ? dist::kWantsValue : 0;
        requests.push_back(worker.push(s, DType::float32, mine, round, flags));
        if (flags == 0) requests.back() = worker.pull(s, round);
      }
      const int n = workers();
      for (std::uint32_t s = 0; s < counts.size(); ++s) {
        const auto sum = sawtooth(counts[s], static_cast<float>(n) * static_cast<float>(round),
                                  static_cast<float>(n * (n - 1) / 2));
        EXPECT_EQ(worker.value<float>(requests[s], DType::float32, counts[s]), sum);
      }
    }
  });
  expectNone(run.errors);
  EXPECT_EQ(run.report.shards, counts.size());
  EXPECT_EQ(run.report.elements, 1 + 1000 + kServerPiece + 2 * kServerPiece + 17);
  EXPECT_GT(run.report.bytesReceived, 5u * 4 * static_cast<unsigned>(workers()) * 3 * kServerPiece);
}

TEST_P(Rounds, UpdateThroughAnOptimizerAsOneProcessWould) {
  for (const char* name : {"sgd", "adam", "lamb"}) {
    OptimizerSpec spec;
    spec.name = name;
    if (spec.name == "sgd") spec.numbers["momentum"] = 0.9;
    const std::size_t count = 2 * kServerPiece + 4321;
    auto optimizer = Optimizer::create(spec);
    std::vector<float> weight = sawtooth(count, 0.01f, -0.3f);
    auto state = optimizer->createState("w", weight.data(), count, DType::float32);
    constexpr int kRounds = 4;
    for (int round = 1; round <= kRounds; ++round) {
      std::vector<std::vector<float>> gradients;
      std::vector<const void*> pointers;
      for (int w = 0; w < workers(); ++w) {
        gradients.push_back(sawtooth(count, 0.001f * static_cast<float>(round), 0.1f * float(w)));
      }
      for (const auto& gradient : gradients) pointers.push_back(gradient.data());
      optimizer->update(*state, weight.data(), pointers);
    }
    const auto bytes = encoded(spec);
    expectNone(served(options(), [&](HandWorker& worker) {
                 worker.define(0, "w", DType::float32, count);
                 if (worker.rank() == 0)
                   worker.init(0, DType::float32, sawtooth(count, 0.01f, -0.3f));
                 const auto set = worker.rank() == 0 ? worker.request(MessageType::setOptimizer,
                                                                      bytes.data(), bytes.size())
                                                     : worker.request(MessageType::setOptimizer);
                 EXPECT_EQ(worker.await(set).header.type, MessageType::done);
                 for (int round = 1; round <= kRounds; ++round) {
                   worker.push(0, DType::float32,
                               sawtooth(count, 0.001f * static_cast<float>(round),
                                        0.1f * float(worker.rank())),
                               static_cast<std::uint64_t>(round));
                 }
                 EXPECT_EQ(worker.pulled<float>(0, DType::float32, count, kRounds), weight) << name;
               }).errors);
  }
}

TEST_P(Rounds, DecodeCompressedPushes) {
  const std::size_t count = kServerPiece + 555;
  for (const CompressionType type : {CompressionType::twoBit, CompressionType::oneBit,
                                     CompressionType::float16, CompressionType::bfloat16}) {
    const GradientCompression compression(type, 0.25);
    const dist::CompressionTerms terms{static_cast<std::uint32_t>(type) + 1, 0.25f};
    std::vector<float> sum(count, 0);
    auto codesOf = [&](int rank) {
      auto gradient = sawtooth(count, 0.02f, -0.9f + 0.1f * static_cast<float>(rank));
      std::vector<float> residual(count, 0);
      std::vector<std::uint8_t> codes(compression.compressedBytes(count));
      compression.compress(gradient.data(), residual.data(), codes.data(), count);
      return codes;
    };
    for (int rank = 0; rank < workers(); ++rank) {
      std::vector<float> decoded(count);
      compression.decompress(codesOf(rank).data(), decoded.data(), count);
      for (std::size_t i = 0; i < count; ++i) {
        sum[i] = rank == 0 ? decoded[i] : sum[i] + decoded[i];
      }
    }
    expectNone(served(options(), [&](HandWorker& worker) {
                 worker.send({MessageType::setCompression}, &terms, sizeof(terms));
                 worker.define(0, "c", DType::float32, count);
                 if (worker.rank() == 0) worker.init(0, DType::float32, sawtooth(count, 0));
                 const auto codes = codesOf(worker.rank());
                 for (std::size_t first = 0; first < count; first += kServerPiece) {
                   Header header{MessageType::push};
                   header.encoding = static_cast<dist::Encoding>(terms.encoding);
                   header.piece = static_cast<std::uint32_t>(first / kServerPiece);
                   header.count = std::min(kServerPiece, count - first);
                   header.round = 1;
                   worker.send(header, codes.data() + compression.compressedBytes(first),
                               compression.compressedBytes(header.count));
                 }
                 EXPECT_EQ(worker.pulled<float>(0, DType::float32, count, 1), sum);
               }).errors);
  }
}

INSTANTIATE_TEST_SUITE_P(WorkersAndPipelines, Rounds,
                         testing::Combine(testing::Values(1, 2, 3), testing::Values(1, 3)));

TEST(Server, SumsInWorkerOrderWhateverTheOrderOfArrival) {
  // 1e8 - 1e8 + 1 is 1 in float32, 1 - 1e8 + 1e8 is 0.
  const std::vector<float> brought = {1e8f, -1e8f, 1};
  std::atomic<int> turn{2};
  expectNone(served(serverOf(3), [&](HandWorker& worker) {
               worker.define(0, "k", DType::float32, 1);
               if (worker.rank() == 0) worker.init<float>(0, DType::float32, {0});
               EXPECT_EQ(worker.pulled<float>(0, DType::float32, 1, 0)[0], 0);
               // The last worker first.
               waitUntil([&] { return turn == worker.rank(); });
               const auto me = static_cast<std::size_t>(worker.rank());
               worker.push<float>(0, DType::float32, {brought[me]}, 1);
               EXPECT_EQ(worker.await(worker.request(MessageType::report)).header.type,
                         MessageType::done);
               --turn;
               EXPECT_EQ(worker.pulled<float>(0, DType::float32, 1, 1)[0], 1);
             }).errors);
}

TEST(Server, ChangesNoValueThatAWorkerStillReads) {
  ServerOptions options = serverOf(2);
  options.asynchronous = true;
  std::atomic<bool> reads{false};
  std::atomic<bool> pushed{false};
  expectNone(served(options, [&](HandWorker& worker) {
               worker.define(0, "k", DType::float32, kServerPiece);
               if (worker.rank() == 0) {
                 worker.init(0, DType::float32, sawtooth(kServerPiece, 1));
                 waitUntil([&] { return reads.load(); });
                 worker.push(0, DType::float32, sawtooth(kServerPiece, 2), 1);
                 worker.await(worker.request(MessageType::report));  // so the push has come
                 pushed = true;
               } else {
                 worker.pull(0, 0);
                 WireEvents events;
                 const Deadline deadline = Deadline::in(20000);
                 while (events.messages.empty() && !deadline.passed()) {
                   worker.wire().poll(events, deadline);
                 }
                 reads = true;
                 ASSERT_EQ(events.messages.size(), 1u);
                 waitUntil([&] { return pushed.load(); });
                 const auto* value = static_cast<const float*>(events.messages[0].payload);
                 EXPECT_EQ(std::vector<float>(value, value + kServerPiece),
                           sawtooth(kServerPiece, 1));
                 worker.wire().release(events.messages[0].token);
               }
               if (worker.rank() == 0) {
                 EXPECT_EQ(worker.pulled<float>(0, DType::float32, kServerPiece, 1),
                           sawtooth(kServerPiece, 2));
               }
             }).errors);
}

TEST(Server, CountsRoundsByWorker) {
  std::atomic<bool> pushedTwice{false};
  expectNone(served(serverOf(2), [&](HandWorker& worker) {
               worker.define(0, "k", DType::int64, 1);
               if (worker.rank() == 0) {
                 worker.init<std::int64_t>(0, DType::int64, {7});
                 worker.push<std::int64_t>(0, DType::int64, {1}, 1);
                 worker.push<std::int64_t>(0, DType::int64, {2}, 2);
                 worker.await(worker.request(MessageType::report));
                 pushedTwice = true;
               } else {
                 waitUntil([&] { return pushedTwice.load(); });
                 // Two pushes of one worker have closed no round.
                 EXPECT_EQ(worker.pulled<std::int64_t>(0, DType::int64, 1, 0)[0], 7);
                 worker.push<std::int64_t>(0, DType::int64, {10}, 1);
                 EXPECT_EQ(worker.pulled<std::int64_t>(0, DType::int64, 1, 1)[0], 11);
                 worker.push<std::int64_t>(0, DType::int64, {20}, 2);
               }
               EXPECT_EQ(worker.pulled<std::int64_t>(0, DType::int64, 1, 2)[0], 22);
             }).errors);
}

TEST(Server, AppliesEachPushOfAnAsynchronousStoreOnItsOwn) {
  ServerOptions options = serverOf(2);
  options.asynchronous = true;
  OptimizerSpec spec;
  spec.name = "sgd";
  spec.numbers = {{"learningRate", 1}, {"rescaleGrad", -1}};
  const auto bytes = encoded(spec);
  expectNone(served(options, [&](HandWorker& worker) {
               worker.define(0, "k", DType::float32, 2 * kServerPiece);
               if (worker.rank() == 0)
                 worker.init(0, DType::float32, sawtooth(2 * kServerPiece, 0));
               worker.await(worker.rank() == 0 ? worker.request(MessageType::setOptimizer,
                                                                bytes.data(), bytes.size())
                                               : worker.request(MessageType::setOptimizer));
               for (std::uint64_t n = 1; n <= 50; ++n) {
                 worker.push(0, DType::float32, sawtooth(2 * kServerPiece, 0, 1), n);
                 // Its own pushes are in what a worker pulls.
                 const auto seen = worker.pulled<float>(0, DType::float32, 2 * kServerPiece, n);
                 EXPECT_GE(seen[0], static_cast<float>(n));
                 EXPECT_GE(seen[2 * kServerPiece - 1], static_cast<float>(n));
               }
               worker.await(worker.request(MessageType::barrier));
               EXPECT_EQ(worker.pulled<float>(0, DType::float32, 2 * kServerPiece, 50),
                         sawtooth(2 * kServerPiece, 0, 100));
             }).errors);
}

TEST(Server, TellsThePusherThatAnOptimizerNeedsFloats) {
  OptimizerSpec spec;
  spec.name = "sgd";
  const auto bytes = encoded(spec);
  expectNone(served(serverOf(1), [&](HandWorker& worker) {
               worker.define(0, "k", DType::int32, 3);
               worker.init<std::int32_t>(0, DType::int32, {1, 2, 3});
               worker.await(worker.request(MessageType::setOptimizer, bytes.data(), bytes.size()));
               const auto push =
                   worker.push<std::int32_t>(0, DType::int32, {4, 5, 6}, 1, dist::kWantsValue);
               const Answer answer = worker.await(push);
               EXPECT_EQ(answer.header.type, MessageType::failed);
               EXPECT_EQ(static_cast<ErrorCode>(answer.header.code), ErrorCode::invalidArgument);
               EXPECT_EQ(lacking(answer.text(), {"key k", "int32"}), "") << answer.text();
               EXPECT_EQ(worker.pulled<std::int32_t>(0, DType::int32, 3, 1),
                         (std::vector<std::int32_t>{1, 2, 3}));
             }).errors);
}

}  // namespace
}  // namespace gradlink::test
