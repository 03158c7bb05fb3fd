// A server's rounds: what it stores, whom it answers and when.
#include <gtest/gtest.h>

#include "test/kvstore/server/support.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kServerPiece = dist::pieceElements(DType::float32);

std::vector<float> sawtooth(std::size_t count, float scale, float offset = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * static_cast<float>(i % 97) + offset;
  return values;
}

TEST(Server, SumsInWorkerOrderWhateverTheOrderOfArrival) {
  // 1e8 - 1e8 + 1 is 1 in float32, 1 - 1e8 + 1e8 is 0.
  const std::vector<float> brought = {1e8f, -1e8f, 1};
  std::atomic<int> turn{2};
  expectServed(serverOf(3), [&](HandWorker& worker) {
    worker.define(0, "k", DType::float32, 1);
    if (worker.rank() == 0) worker.init<float>(0, DType::float32, {0});
    EXPECT_EQ(worker.pulled<float>(0, DType::float32, 1, 0)[0], 0);
    // The last worker first.
    waitUntil([&] { return turn == worker.rank(); });
    const auto me = static_cast<std::size_t>(worker.rank());
    worker.push<float>(0, DType::float32, {brought[me]}, 1);
    EXPECT_EQ(worker.await(worker.request(MessageType::report)).header.type, MessageType::done);
    --turn;
    EXPECT_EQ(worker.pulled<float>(0, DType::float32, 1, 1)[0], 1);
  });
}

TEST(Server, ChangesNoValueThatAWorkerStillReads) {
  ServerOptions options = serverOf(2);
  options.asynchronous = true;
  std::atomic<bool> reads{false};
  std::atomic<bool> pushed{false};
  expectServed(options, [&](HandWorker& worker) {
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
      EXPECT_EQ(std::vector<float>(value, value + kServerPiece), sawtooth(kServerPiece, 1));
      worker.wire().release(events.messages[0].token);
    }
    if (worker.rank() == 0) {
      EXPECT_EQ(worker.pulled<float>(0, DType::float32, kServerPiece, 1),
                sawtooth(kServerPiece, 2));
    }
  });
}

}  // namespace
}  // namespace gradlink::test
