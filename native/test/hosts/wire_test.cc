// Messages between ranks of several hosts: memory is shared inside one, the others get theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/wire.h"
#include "test/hosts/support.h"

namespace gradlink::test {
namespace {

TEST(HostsWire, CarriesMessagesInsideAndAcross) {
  const Layout layout = {0, 1, 0, 1, 1};
  constexpr int kSize = 5;
  expectNone(onHosts(layout, [&](Communicator& comm, int rank) {
    auto wire = comm.openWire();
    ASSERT_EQ(wire->rank(), rank);
    ASSERT_EQ(wire->size(), kSize);
    auto* payload = static_cast<int*>(wire->allocate(sizeof(int)));
    *payload = 100 + rank;
    for (int to = 0; to < kSize; ++to) {
      if (to == rank) continue;
      const std::byte header{static_cast<unsigned char>(to)};
      wire->send(to, {&header, 1}, payload, sizeof(int), static_cast<std::uint64_t>(to + 1));
    }
    std::vector<int> from;
    std::vector<std::uint64_t> sent;
    const Deadline deadline = Deadline::in(20000);
    while (from.size() + sent.size() < 2 * (kSize - 1) && !deadline.passed()) {
      WireEvents events;
      wire->poll(events, deadline);
      for (const WireMessage& message : events.messages) {
        EXPECT_EQ(static_cast<int>(message.header[0]), rank);
        int value = 0;
        ASSERT_EQ(message.bytes, sizeof(value));
        std::memcpy(&value, message.payload, sizeof(value));
        EXPECT_EQ(value, 100 + message.source);
        from.push_back(message.source);
        wire->release(message.token);
      }
      sent.insert(sent.end(), events.sent.begin(), events.sent.end());
    }
    std::sort(from.begin(), from.end());
    std::sort(sent.begin(), sent.end());
    std::vector<int> others;
    std::vector<std::uint64_t> tickets;
    for (int r = 0; r < kSize; ++r) {
      if (r == rank) continue;
      others.push_back(r);
      tickets.push_back(static_cast<std::uint64_t>(r + 1));
    }
    EXPECT_EQ(from, others);
    EXPECT_EQ(sent, tickets);
    comm.barrier();
    wire->close(Deadline::in(20000));
  }));
}

}  // namespace
}  // namespace gradlink::test
