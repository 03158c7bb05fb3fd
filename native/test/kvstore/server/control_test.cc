// What a server does for the store as a whole: barriers, optimizers, states, commands, reports.
#include <gtest/gtest.h>

#include "kvstore/optimizer/optimizer.h"
#include "test/kvstore/server/support.h"
#include "test/kvstore/support.h"

namespace gradlink::test {
namespace {

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

TEST(ServerControl, ChangesTheRateBetweenTheRoundsOfTheWorkerThatAsks) {
  expectServed(serverOf(2), [&](HandWorker& worker) {
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
  });
}

TEST(ServerControl, TellsAllWhyWorker0HasNoStatesAfterAll) {
  expectServed(serverOf(2), [&](HandWorker& worker) {
    const std::string reason = "no file";
    const auto request = worker.rank() == 0 ? worker.request(MessageType::loadStates, reason.data(),
                                                             reason.size(), dist::kWithdrawn)
                                            : worker.request(MessageType::loadStates);
    const Answer answer = worker.await(request);
    EXPECT_EQ(answer.header.type, MessageType::failed);
    EXPECT_EQ(answer.text(), reason);
  });
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
