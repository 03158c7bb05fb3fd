// What agreeing on a call sends, counted: up to a thousand ranks that are threads, whose messages
// stay in this process; and whom a rank misses in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "messages/agreement.h"

namespace gradlink::messages {
namespace {

/// As many bytes as GPUs announce of a call.
constexpr std::size_t kPayloadBytes = 40;
/// Of the engine's own announcement.
constexpr std::size_t kHeadBytes = 24;

struct Rank {
  std::mutex mutex;
  std::condition_variable came;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> messages;
  struct Receive {
    void* into;
    int source;
    int tag;
  };
  /// By the bits of their requests.
  std::map<std::uint64_t, Receive> receives;
  std::uint64_t requests = 0;
  std::uint64_t sent = 0;
  std::uint64_t bytesSent = 0;
};

/// All ranks; the bits of a communicator are a rank, those of a request that is done are 0.
std::vector<std::unique_ptr<Rank>>* counted = nullptr;
thread_local int ownRank = 0;

Rank& rankAt(int rank) { return *(*counted)[static_cast<std::size_t>(rank)]; }

int countedRank(CommHandle comm, int* rank) {
  *rank = static_cast<int>(comm.bits);
  return 0;
}
int countedSize(CommHandle, int* size) {
  *size = static_cast<int>(counted->size());
  return 0;
}
int countedSend(const void* data, std::size_t bytes, int destination, int tag, CommHandle comm,
                RequestHandle* request) {
  const int source = static_cast<int>(comm.bits);
  ++rankAt(source).sent;
  rankAt(source).bytesSent += bytes;
  const auto* const first = static_cast<const std::byte*>(data);
  Rank& to = rankAt(destination);
  const std::lock_guard lock(to.mutex);
  to.messages[{source, tag}].emplace_back(first, first + bytes);
  to.came.notify_all();
  request->bits = 0;
  return 0;
}
int countedReceive(void* into, std::size_t, int source, int tag, CommHandle comm,
                   RequestHandle* request) {
  Rank& own = rankAt(static_cast<int>(comm.bits));
  const std::lock_guard lock(own.mutex);
  request->bits = ++own.requests;
  own.receives[request->bits] = {into, source, tag};
  return 0;
}
/// Stays a while, so that a thousand ranks do not all look all the time.
int countedTest(RequestHandle* request, bool* done, MessageStatus* status) {
  *done = true;
  if (request->bits == 0) return 0;
  Rank& own = rankAt(ownRank);
  std::unique_lock lock(own.mutex);
  const Rank::Receive receive = own.receives.at(request->bits);
  auto& queue = own.messages[{receive.source, receive.tag}];
  *done = own.came.wait_for(lock, std::chrono::milliseconds(100), [&] { return !queue.empty(); });
  if (!*done) return 0;
  std::memcpy(receive.into, queue.front().data(), queue.front().size());
  if (status != nullptr) *status = {receive.source, receive.tag, queue.front().size()};
  queue.pop_front();
  own.receives.erase(request->bits);
  request->bits = 0;
  return 0;
}
int countedTestAll(RequestHandle* requests, int count, bool* done) {
  *done = true;
  for (int i = 0; i < count && *done; ++i) countedTest(&requests[i], done, nullptr);
  return 0;
}
/// Of any source.
int countedProbe(int, int tag, CommHandle comm, bool* found, MessageStatus* status) {
  Rank& own = rankAt(static_cast<int>(comm.bits));
  const std::lock_guard lock(own.mutex);
  const auto at = std::find_if(own.messages.begin(), own.messages.end(), [&](const auto& each) {
    return each.first.second == tag && !each.second.empty();
  });
  *found = at != own.messages.end();
  if (*found) *status = {at->first.first, tag, at->second.front().size()};
  return 0;
}
int countedReceiveProbed(void* into, std::size_t bytes, int source, int tag, CommHandle comm,
                         MessageStatus*) {
  Rank& own = rankAt(static_cast<int>(comm.bits));
  const std::lock_guard lock(own.mutex);
  auto& queue = own.messages.at({source, tag});
  std::memcpy(into, queue.front().data(), bytes);
  queue.pop_front();
  return 0;
}

/// With what agreeing calls.
constexpr Shim kCounting = [] {
  Shim shim{};
  shim.version = kShimVersion;
  shim.flavour = "counting";
  shim.rank = countedRank;
  shim.size = countedSize;
  shim.isend = countedSend;
  shim.irecv = countedReceive;
  shim.test = countedTest;
  shim.testAll = countedTestAll;
  shim.probe = countedProbe;
  shim.receive = countedReceiveProbed;
  return shim;
}();

struct Agreed {
  std::uint64_t mostMessages = 0;
  std::uint64_t mostBytes = 0;
  /// What each rank was told; empty where all called the same.
  std::vector<std::string> told;
};

/// One call of so many ranks, of which `different` calls another; -1: none does.
Agreed agree(int size, int different = -1) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(std::make_unique<Rank>());
  counted = &ranks;
  Agreed result{.told = std::vector<std::string>(static_cast<std::size_t>(size))};
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      ownRank = r;
      Link link(CommHandle{static_cast<std::uint64_t>(r)}, kCounting);
      Agreement agreement(link);
      const std::string name = "own " + std::to_string(r);
      Wait wait(link, "allReduce", 60000, Wait::Kind::agreement, name.c_str());
      const Shape shape{.kind = Kind::allReduce, .count = r == different ? 2U : 1U};
      const std::vector<std::byte> payload(kPayloadBytes, static_cast<std::byte>(r));
      try {
        agreement.meet(shape, payload, wait);
        for (int other = 0; other < size; ++other) {
          const auto theirs = agreement.payload(other);
          if (theirs.size() != kPayloadBytes || theirs[0] != static_cast<std::byte>(other)) {
            result.told[static_cast<std::size_t>(r)] = "got no payload of " + std::to_string(other);
          }
        }
      } catch (const Error& error) {
        result.told[static_cast<std::size_t>(r)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& rank : ranks) {
    result.mostMessages = std::max(result.mostMessages, rank->sent);
    result.mostBytes = std::max(result.mostBytes, rank->bytesSent);
  }
  counted = nullptr;
  return result;
}

TEST(Agreeing, TakesAsManyMessagesAsTheRanksCanBeHalved) {
  for (const int size : {2, 3, 4, 5, 8, 33, 64, 100, 1000}) {
    const Agreed agreed = agree(size);
    const auto halvings =
        static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(size) - 1));
    EXPECT_EQ(agreed.mostMessages, halvings) << size << " ranks";
    EXPECT_LE(agreed.mostBytes, static_cast<std::uint64_t>(size) * (kHeadBytes + kPayloadBytes))
        << size << " ranks";
    for (const std::string& told : agreed.told) ASSERT_EQ(told, "") << size << " ranks";
  }
}

TEST(Agreeing, MissesNobodyWhoCameAndThenLeft) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < 3; ++r) ranks.push_back(std::make_unique<Rank>());
  counted = &ranks;
  Link link(CommHandle{0}, kCounting);
  const Goodbye goodbye{.calls = 1};
  RequestHandle sent;
  countedSend(&goodbye, sizeof(goodbye), 0, kLeftTag, CommHandle{1}, &sent);
  link.listen();
  link.beginCall();
  EXPECT_EQ(link.missing(), std::vector<int>{2});
  EXPECT_EQ(link.leftBeforeCall(), -1);
  link.beginCall();
  EXPECT_EQ(link.missing(), (std::vector<int>{1, 2}));
  EXPECT_EQ(link.leftBeforeCall(), 1);
  counted = nullptr;
}

// As many messages again for their names.
TEST(Agreeing, TellsAThousandRanksWhichOneCallsSomethingElse) {
  const Agreed agreed = agree(1000, 777);
  EXPECT_EQ(agreed.mostMessages, 20U);
  for (const std::string& told : agreed.told) {
    for (const char* part : {"rank 777", "'own 777'", "'own 0'"}) {
      ASSERT_NE(told.find(part), std::string::npos) << told;
    }
  }
}

}  // namespace
}  // namespace gradlink::messages
