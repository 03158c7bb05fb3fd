// Meetings over TCP: of a large job, with every rank a thread of this process, and of a rank that
// comes twice.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "messages/tcp/tcp_engine.h"
#include "tcp_forger.h"
#include "test/message_support.h"

namespace gradlink::messages::tcp {
namespace {

constexpr int kContext = 0;
constexpr double kPatientMs = 120'000;

/// Of each: an epoll, a listener, and both ends of the way to rank 0.
constexpr rlim_t kFilesOfARank = 4;

/// More come at once than rank 0 lets wait unproven: those who had to go come again.
TEST(SlowTcpMeeting, OfAThousandRanks) {
  constexpr int kSize = 1000;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlim_t needed = kSize * kFilesOfARank + 100;
  if (files.rlim_max < needed) GTEST_SKIP() << "needs " << needed << " open files";
  files.rlim_cur = std::max(files.rlim_cur, needed);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);

  const int port = freePort();
  std::vector<std::unique_ptr<Engine>> engines;
  for (int rank = 0; rank < kSize; ++rank) {
    engines.push_back(std::make_unique<Engine>(settingsOf(rank, kSize, port)));
  }
  std::vector<std::thread> others;
  for (int rank = 1; rank < kSize; ++rank) {
    Engine& engine = *engines[static_cast<std::size_t>(rank)];
    others.emplace_back([&engine] { EXPECT_NO_THROW(engine.meet(kPatientMs)); });
  }
  const Deadline::Clock::time_point began = Deadline::Clock::now();
  EXPECT_NO_THROW(engines[0]->meet(kPatientMs));
  // What rank 0 tells the others goes out as it looks.
  std::atomic<bool> met = false;
  std::thread tells([&] {
    while (!met) engines[0]->progress();
  });
  for (std::thread& other : others) other.join();
  met = true;
  tells.join();
  RecordProperty("seconds", std::to_string(secondsSince(began)));

  // The last knows where the first of the others listens.
  Engine& sender = *engines.back();
  Engine& receiver = *engines[1];
  std::vector<int> all(kSize);
  for (int rank = 0; rank < kSize; ++rank) all[static_cast<std::size_t>(rank)] = rank;
  sender.mailbox(kContext).name(all, sender.rank());
  receiver.mailbox(kContext).name(all, receiver.rank());
  const double value = 42;
  double place = 0;
  const std::unique_ptr<Request> sent(sender.send(kContext, &value, sizeof(value), 1, 0));
  const std::unique_ptr<Request> got(
      receiver.receive(kContext, &place, sizeof(place), kSize - 1, 0));
  waitUntil([&] {
    sender.progress();
    receiver.progress();
    return sent->done && got->done;
  });
  EXPECT_EQ(place, value);
}

TEST(TcpSettings, TakeARankOfTheJobAlone) {
  for (const char* name : {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) setenv(name, "2", 1);
  for (const auto& [rank, right] : {std::pair("-1", false), std::pair("0", true),
                                    std::pair("1", true), std::pair("2", false)}) {
    setenv("RANK", rank, 1);
    EXPECT_EQ(test::codeOf([] { settings(); }),
              right ? std::nullopt : std::optional(ErrorCode::invalidArgument))
        << rank;
  }
  for (const char* name : {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RANK"}) unsetenv(name);
}

TEST(TcpMeeting, RefusesARankThatIsThereAlready) {
  const int port = freePort();
  Engine engine(settingsOf(0, 3, port));
  std::optional<Error> error;
  std::thread rendezvous([&] { error = test::errorOf([&] { engine.meet(kMostMs); }); });
  Forger first(1, 3, port);
  const Forger second(1, 3, port);
  EXPECT_EQ(first.next(FrameKind::failed).tag, 1);
  rendezvous.join();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::mismatch);
  EXPECT_EQ(error->rank, 1);
}

TEST(TcpMeeting, TakesARankThatLeftItAndComesAgain) {
  const int port = freePort();
  Engine engine(settingsOf(0, 3, port));
  std::thread rendezvous([&] { engine.meet(kMostMs); });
  { const Forger early(1, 3, port); }
  Forger again(1, 3, port);
  const Forger other(2, 3, port);
  rendezvous.join();
  EXPECT_FALSE(engine.isGone(1));
  const std::unique_ptr<Request> sent(engine.send(kContext, nullptr, 0, 1, 0));
  EXPECT_EQ(again.next(FrameKind::message).bytes, 0u);
}

}  // namespace
}  // namespace gradlink::messages::tcp
