// A server's rounds: what it stores, whom it answers and when; and what it does for the store as a
// whole: barriers, optimizers, states, commands, reports.
#include "kvstore/optimizer/optimizer.h"
#include "test/kvstore/server/support.h"
#include "test/kvstore/support.h"

namespace gradlink::test {
namespace {

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
    worker.define(1);
    if (worker.rank() == 0) worker.init({0});
    EXPECT_EQ(worker.pulled(1, 0)[0], 0);
    // The last worker first.
    waitUntil([&] { return turn == worker.rank(); });
    const auto me = static_cast<std::size_t>(worker.rank());
    worker.push({brought[me]}, 1);
    EXPECT_EQ(worker.await(worker.request(MessageType::report)).header.type, MessageType::done);
    --turn;
    EXPECT_EQ(worker.pulled(1, 1)[0], 1);
  });
}

TEST(Server, ChangesNoValueThatAWorkerStillReads) {
  ServerOptions options = serverOf(2);
  options.asynchronous = true;
  std::atomic<bool> reads{false};
  std::atomic<bool> pushed{false};
  expectServed(options, [&](HandWorker& worker) {
    worker.define(kServerPiece);
    if (worker.rank() == 0) {
      worker.init(sawtooth(kServerPiece, 1));
      waitUntil([&] { return reads.load(); });
      worker.push(sawtooth(kServerPiece, 2), 1);
      worker.await(worker.request(MessageType::report));  // so the push has come
      pushed = true;
    } else {
      worker.pull(0);
      WireEvents events;
      ASSERT_TRUE(pollUntil(worker.wire(), events, [&] { return !events.messages.empty(); }));
      reads = true;
      waitUntil([&] { return pushed.load(); });
      const auto* value = static_cast<const float*>(events.messages[0].payload);
      EXPECT_EQ(std::vector<float>(value, value + kServerPiece), sawtooth(kServerPiece, 1));
      worker.wire().release(events.messages[0].token);
    }
    if (worker.rank() == 0) {
      EXPECT_EQ(worker.pulled(kServerPiece, 1), sawtooth(kServerPiece, 2));
    }
  });
}

// An optimizer of the whole: what it steps before all of the value is there.
TEST(Server, StepsNothingBeforeAllPiecesAreThere) {
  std::vector<std::vector<float>> values;
  for (const bool early : {false, true}) {
    expectServed(serverOf(1), [&](HandWorker& worker) {
      const std::vector<float> initial = sawtooth(kServerPiece + 10, 1, 1);
      const auto optimizer = saveStates(*optimizerOf("lamb"), {}, true);
      worker.define(initial.size());
      worker.await(worker.request(MessageType::setOptimizer, optimizer.data(), optimizer.size()));
      if (early) worker.push(sawtooth(initial.size(), 2), 1);
      worker.init(initial);
      if (!early) worker.push(sawtooth(initial.size(), 2), 1);
      values.push_back(worker.pulled(initial.size(), 1));
    });
  }
  EXPECT_EQ(values[0], values[1]);
}

std::vector<std::uint8_t> sgdStates(double rate, double momentum = 0) {
  return saveStates(*optimizerOf("sgd", {{"learningRate", rate}, {"momentum", momentum}}), {},
                    true);
}

void set(HandWorker& worker, MessageType what, const std::vector<std::uint8_t>& bytes) {
  const auto request =
      worker.rank() == 0 ? worker.request(what, bytes.data(), bytes.size()) : worker.request(what);
  const Answer answer = worker.await(request);
  EXPECT_EQ(answer.header.type, MessageType::done) << answer.text();
}

// The first piece of both workers' pushes comes before the second of either.
TEST(Server, CountsAStepForEachWorkerWhereNoneWaitsForOthers) {
  ServerOptions options = serverOf(2);
  options.asynchronous = true;
  std::atomic<int> turn{0};
  expectServed(options, [&](HandWorker& worker) {
    const std::vector<float> ones(2 * kServerPiece, 1);
    worker.define(ones.size());
    if (worker.rank() == 0) worker.init(ones);
    // Its steps differ by their numbers.
    set(worker, MessageType::setOptimizer, saveStates(*optimizerOf("adam"), {}, true));
    for (const int piece : {0, 1}) {
      waitUntil([&] { return turn == 2 * piece + worker.rank(); });
      worker.pushPiece(ones, static_cast<std::size_t>(piece), 1);
      worker.await(worker.request(MessageType::report));  // so the push has come
      ++turn;
    }
    waitUntil([&] { return turn == 4; });
    const std::vector<float> value = worker.pulled(ones.size(), 1);
    EXPECT_LT(value[0], 1);
    EXPECT_EQ(value, std::vector<float>(value.size(), value[0]));
  });
}

TEST(ServerControl, ChangesTheRateBetweenTheRoundsOfTheWorkerThatAsks) {
  ServerOptions options = serverOf(2);
  // Until there is an optimizer.
  options.updater = [](const ShardUpdate&) { ADD_FAILURE() << "called"; };
  expectServed(options, [&](HandWorker& worker) {
    worker.define(1);
    if (worker.rank() == 0) worker.init({0});
    set(worker, MessageType::setOptimizer, sgdStates(1));
    worker.push({-1}, 1);
    worker.push({-1}, 2);
    if (worker.rank() == 1) {
      const double rate = 10;
      worker.request(MessageType::setLearningRate, &rate, sizeof(rate));
    }
    worker.push({-1}, 3);
    EXPECT_EQ(worker.pulled(1, 3)[0], 2 + 2 + 20);
  });
}

TEST(ServerControl, TellsAllWhyWorker0HasNoStatesAfterAll) {
  expectServed(serverOf(3), [&](HandWorker& worker) {
    const std::string reason = "no file";
    if (worker.rank() < 2) {
      const auto request = worker.rank() == 0
                               ? worker.request(MessageType::loadStates, reason.data(),
                                                reason.size(), dist::kWithdrawn)
                               : worker.request(MessageType::loadStates);
      const Answer answer = worker.await(request);
      EXPECT_EQ(answer.header.type, MessageType::failed);
      EXPECT_EQ(answer.text(), reason);
    }
    // Who has not asked by a barrier asks for what is set after it.
    worker.await(worker.request(MessageType::barrier));
    set(worker, MessageType::setOptimizer, sgdStates(1));
  });
}

TEST(ServerControl, RunsCommandsAndReports) {
  ServerOptions options = serverOf(2);
  std::vector<std::string> seen;
  options.onCommand = [&](int worker, const std::string& text) {
    seen.push_back(std::to_string(worker) + " " + text);
    if (text == "bad") throw Error(ErrorCode::system, "no command");
  };
  std::uint64_t sent = 0;
  const auto run = served(options, [&](HandWorker& worker) {
    if (worker.rank() == 0) return;
    EXPECT_EQ(worker.await(worker.requestText(MessageType::command, "profile")).header.type,
              MessageType::done);
    EXPECT_EQ(worker.await(worker.requestText(MessageType::command, "bad")).header.type,
              MessageType::failed);
    worker.define(12);
    const std::string report = worker.await(worker.request(MessageType::report)).text();
    EXPECT_NE(report.find("\"shards\":1,\"elements\":12,"), std::string::npos) << report;
    EXPECT_EQ(worker.await(worker.request(MessageType::deadNodes)).as<double>(),
              std::vector<double>{0});
    sent = worker.wire().bytesSent().back();
  });
  EXPECT_EQ(run.report.bytesReceived, sent);
  expectNone(run.errors);
  EXPECT_EQ(seen, (std::vector<std::string>{"1 profile", "1 bad"}));
  EXPECT_EQ(run.report.server, 0);
}

}  // namespace
}  // namespace gradlink::test
