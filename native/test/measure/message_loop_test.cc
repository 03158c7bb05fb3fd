#include "measure/message_loop.h"

#include <array>
#include <utility>

#include "core/forwarding_communicator.h"
#include "test/threads_support.h"
#include "test/thrown.h"

namespace gradlink::measure {
namespace {

/// Passes every call on, counts what is sent, and spoils a byte of what this send brings; or the
/// receives after so many bring nothing.
class CountingRank : public ForwardingCommunicator {
 public:
  explicit CountingRank(std::unique_ptr<Communicator> inner, int spoiled = -1, int received = -1)
      : ForwardingCommunicator(std::move(inner)), spoiled_(spoiled), received_(received) {}
  void run(const Call& call) override {
    if (isMessage(call.shape.kind) && call.messages.front().sends == false && received_-- == 0) {
      Message elsewhere = call.messages.front();
      std::vector<unsigned char> place(elsewhere.count);
      elsewhere.data = place.data();
      Call lost = call;
      lost.messages = {&elsewhere, 1};
      return inner().run(lost);
    }
    if (call.shape.kind != Kind::send) return inner().run(call);
    const Message& message = call.messages.front();
    unsigned char& last = static_cast<unsigned char*>(message.data)[message.count - 1];
    const unsigned char spoil = sends == spoiled_ ? 1 : 0;
    last ^= spoil;
    inner().run(call);
    last ^= spoil;
    ++sends;
    bytes += message.count;
  }

  int sends = 0;
  std::size_t bytes = 0;

 private:
  const int spoiled_;
  int received_;
};

/// Ranks 0 and 2 of three, the latter first, as two messages of a window need not wait for their
/// receives.
std::array<MessageResult, 3> timed(MessageOptions options, int spoiled,
                                   std::array<std::pair<int, std::size_t>, 3>& sent,
                                   int received = -1) {
  std::array<MessageResult, 3> results;
  test::expectNone(test::onRanksTaken(3, [&](std::unique_ptr<Communicator> comm, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    CountingRank counting(std::move(comm), rank == 2 ? spoiled : -1, rank == 0 ? received : -1);
    if (rank != 1) {
      MessageOptions own = options;
      own.peer = 2 - rank;
      own.first = rank == 2;
      results[at] = timeMessages(counting, own);
    }
    counting.barrier();
    sent[at] = {counting.sends, counting.bytes};
  }));
  return results;
}

TEST(MessageLoop, SendsWindowsAndAnswersAndTimesThem) {
  for (const std::size_t bytes : {1ul, 1000ul, 100'000ul}) {
    std::array<std::pair<int, std::size_t>, 3> sent;
    const auto results =
        timed({.bytes = bytes, .window = 4, .answerBytes = 3, .warmup = 2, .samples = 5}, -1, sent);
    // One exchange to check, two to warm up, five samples.
    EXPECT_EQ(sent[2], std::pair(8 * 4, 8 * 4 * bytes));
    EXPECT_EQ(sent[0], std::pair(8, std::size_t{8 * 3}));
    EXPECT_EQ(sent[1].first, 0);
    EXPECT_EQ(results[2].seconds.size(), 5u);
    for (const double seconds : results[2].seconds) EXPECT_GT(seconds, 0);
    EXPECT_TRUE(results[0].seconds.empty());
    EXPECT_EQ(results[0].wrong + results[2].wrong, 0u);
  }
}

TEST(MessageLoop, SeesWrongBytesBeforeTheTimingAndInIt) {
  const MessageOptions options{
      .bytes = 64, .window = 1, .answerBytes = 64, .warmup = 1, .samples = 2};
  std::array<std::pair<int, std::size_t>, 3> sent;
  for (const int spoiled : {0, 3}) {
    EXPECT_EQ(timed(options, spoiled, sent)[0].wrong, 1u) << spoiled;
  }
  // What came before does not pass for a message that never came.
  EXPECT_EQ(timed(options, -1, sent, 3)[0].wrong, 64u);
  MessageOptions unchecked = options;
  unchecked.verify = false;
  EXPECT_EQ(timed(unchecked, 2, sent)[0].wrong, 0u);
  EXPECT_EQ(sent[2].first, 3);
}

TEST(MessageLoop, RefusesWhatCannotBe) {
  const auto errors = test::onRanks(2, [](Communicator& comm, int rank) {
    const int peer = 1 - rank;
    for (const MessageOptions& options :
         {MessageOptions{.peer = rank}, MessageOptions{.peer = 2}, MessageOptions{.peer = -1},
          MessageOptions{.peer = peer, .window = 0}, MessageOptions{.peer = peer, .warmup = -1},
          MessageOptions{.peer = peer, .samples = 0}}) {
      test::expectMisuse([&] { timeMessages(comm, options); });
    }
  });
  test::expectNone(errors);
}

}  // namespace
}  // namespace gradlink::measure
