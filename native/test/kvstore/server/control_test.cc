// What a server does for the store as a whole: barriers, optimizers, states, commands, reports.
#include <gtest/gtest.h>

#include "kvstore/optimizer/optimizer.h"
#include "test/kvstore/server/support.h"

namespace gradlink::test {
namespace {

std::vector<std::uint8_t> sgdStates(double rate, double momentum = 0) {
  OptimizerSpec spec;
  spec.name = "sgd";
  spec.numbers = {{"learningRate", rate}, {"momentum", momentum}};
  return saveStates(*Optimizer::create(spec), {}, true);
}

void set(HandWorker& worker, MessageType what, const std::vector<std::uint8_t>& bytes) {
  const auto request =
      worker.rank() == 0 ? worker.request(what, bytes.data(), bytes.size()) : worker.request(what);
  const Answer answer = worker.await(request);
  EXPECT_EQ(answer.header.type, MessageType::done) << answer.text();
}

TEST(ServerControl, AnswersABarrierWhenAllHaveAsked) {
  std::atomic<int> came{0};
  expectNone(served(serverOf(3), [&](HandWorker& worker) {
               for (int turn = 1; turn <= 20; ++turn) {
                 ++came;
                 worker.await(worker.request(MessageType::barrier));
                 EXPECT_GE(came.load(), 3 * turn);
               }
             }).errors);
}

TEST(ServerControl, ChangesTheRateBetweenTheRoundsOfTheWorkerThatAsks) {
  expectNone(served(serverOf(2), [&](HandWorker& worker) {
               worker.define(0, "k", DType::float32, 1);
               if (worker.rank() == 0) worker.init<float>(0, DType::float32, {0});
               set(worker, MessageType::setOptimizer, sgdStates(1));
               worker.push<float>(0, DType::float32, {-1}, 1);
               worker.push<float>(0, DType::float32, {-1}, 2);
               if (worker.rank() == 1) {
                 const double rate = 10;
                 worker.request(MessageType::setLearningRate, &rate, sizeof(rate));
               }
               worker.push<float>(0, DType::float32, {-1}, 3);
               EXPECT_EQ(worker.pulled<float>(0, DType::float32, 1, 3)[0], 2 + 2 + 20);
             }).errors);
}

TEST(ServerControl, SaysWhatCannotBeSet) {
  expectNone(served(serverOf(1), [&](HandWorker& worker) {
               const double rate = 1;
               Answer answer =
                   worker.await(worker.request(MessageType::setLearningRate, &rate, sizeof(rate)));
               EXPECT_EQ(answer.header.type, MessageType::failed);
               answer = worker.await(worker.request(MessageType::saveStates));
               EXPECT_EQ(answer.header.type, MessageType::failed);
               answer = worker.await(worker.requestText(MessageType::loadStates, "no states"));
               EXPECT_EQ(answer.header.type, MessageType::failed);
               // And none of it ended the store.
               worker.await(worker.request(MessageType::barrier));
             }).errors);
}

TEST(ServerControl, TellsAllWhyWorker0HasNoStatesAfterAll) {
  expectNone(served(serverOf(2), [&](HandWorker& worker) {
               const std::string reason = "no file";
               const auto request = worker.rank() == 0
                                        ? worker.request(MessageType::loadStates, reason.data(),
                                                         reason.size(), dist::kWithdrawn)
                                        : worker.request(MessageType::loadStates);
               const Answer answer = worker.await(request);
               EXPECT_EQ(answer.header.type, MessageType::failed);
               EXPECT_EQ(answer.text(), reason);
             }).errors);
}

TEST(ServerControl, SavesStatesThatGoOnElsewhereBitForBit) {
  std::vector<std::byte> saved;
  std::vector<float> half;
  std::vector<float> full;
  const std::vector<float> gradient = {0.1f, -0.7f, 3};
  expectNone(served(serverOf(1), [&](HandWorker& worker) {
               worker.define(4, "w", DType::float32, 3);
               worker.init<float>(4, DType::float32, {1, 2, 3});
               set(worker, MessageType::setOptimizer, sgdStates(0.1, 0.9));
               for (std::uint64_t n = 1; n <= 3; ++n) worker.push(4, DType::float32, gradient, n);
               // Of these three: saved after them, before what follows.
               const auto save =
                   worker.request(MessageType::saveStates, nullptr, 0, dist::kDumpOptimizer);
               half = worker.pulled<float>(4, DType::float32, 3, 3);
               for (std::uint64_t n = 4; n <= 6; ++n) worker.push(4, DType::float32, gradient, n);
               full = worker.pulled<float>(4, DType::float32, 3, 6);
               const Answer answer = worker.await(save);
               ASSERT_EQ(answer.header.type, MessageType::states);
               saved = answer.payload;
             }).errors);
  expectNone(served(serverOf(2), [&](HandWorker& worker) {
               worker.define(0, "w", DType::float32, 3);
               if (worker.rank() == 0) worker.init(0, DType::float32, half);
               const auto* bytes = reinterpret_cast<const std::uint8_t*>(saved.data());
               set(worker, MessageType::loadStates, {bytes, bytes + saved.size()});
               // The second brings nothing.
               for (std::uint64_t n = 1; n <= 3; ++n) {
                 worker.push(0, DType::float32,
                             worker.rank() == 0 ? gradient : std::vector<float>(3, 0), n);
               }
               EXPECT_EQ(worker.pulled<float>(0, DType::float32, 3, 3), full);
             }).errors);
}

TEST(ServerControl, RunsCommandsAndReports) {
  ServerOptions options = serverOf(2);
  std::vector<std::string> seen;
  options.onCommand = [&](int worker, const std::string& text) {
    seen.push_back(std::to_string(worker) + " " + text);
    if (text == "bad") throw Error(ErrorCode::system, "no command");
  };
  const auto run = served(options, [&](HandWorker& worker) {
    if (worker.rank() == 0) return;
    EXPECT_EQ(worker.await(worker.requestText(MessageType::command, "profile")).header.type,
              MessageType::done);
    EXPECT_EQ(worker.await(worker.requestText(MessageType::command, "bad")).header.type,
              MessageType::failed);
    worker.define(0, "k", DType::float32, 12);
    const std::string report = worker.await(worker.request(MessageType::report)).text();
    EXPECT_NE(report.find("\"shards\":1,\"elements\":12,"), std::string::npos) << report;
    EXPECT_EQ(worker.await(worker.request(MessageType::deadNodes)).as<double>(),
              std::vector<double>{0});
  });
  expectNone(run.errors);
  EXPECT_EQ(seen, (std::vector<std::string>{"1 profile", "1 bad"}));
  EXPECT_EQ(run.report.server, 0);
}

}  // namespace
}  // namespace gradlink::test
