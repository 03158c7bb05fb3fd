// Wires between processes.
#include "test/process/support.h"
#include "test/wire_support.h"

namespace gradlink::test {
namespace {

std::vector<Child> wiresOf(int size, const std::function<std::string(Wire&, int)>& body) {
  const std::string name = freshName();
  return startEach(size, [&](int r) {
    auto wire = shm::joinWire(optionsFor(name, r, size));
    const std::string wrong = body(*wire, r);
    wire->close(Deadline::in(20000));
    return wrong;
  });
}

TEST(WireOfProcesses, DeliversInOrderAndUnaltered3) {
  expectFine(wiresOf(3, [](Wire& wire, int) { return exchange(wire, 3000); }));
}

TEST(WireOfProcesses, MapsWhatWasAllocatedLaterAndForgetsWhatWasFreed) {
  expectFine(wiresOf(2, [](Wire& wire, int rank) -> std::string {
    WireEvents events;
    for (int round = 0; round < 20; ++round) {
      if (rank == 0) {
        const auto words = static_cast<std::size_t>(1000 * (round + 1));
        auto* memory = static_cast<std::uint64_t*>(wire.allocate(words * 8));
        for (std::size_t i = 0; i < words; ++i) {
          if (memory[i] != 0) return "memory is not zeroed";
          memory[i] = i + static_cast<std::uint64_t>(round);
        }
        // What goes on behind it is not the wire's.
        const std::size_t behind = (words * 8 + 4095) / 4096 * 4096 + 1;
        if (!wire.owns(memory, behind - 1) || wire.owns(memory, behind)) return "owns another";
        const auto send = [&] { sendText(wire, 1, "x", memory, behind, 1); };
        if (codeOf(send) != ErrorCode::invalidArgument) return "sent what is not its own";
        sendText(wire, 1, "x", memory, words * 8, 1);
        if (!pollUntil(wire, events, [&] { return !events.sent.empty(); })) return "no receipt";
        wire.deallocate(memory);
      } else {
        if (!pollUntil(wire, events, [&] { return !events.messages.empty(); })) return "nothing";
        const WireMessage& m = events.messages[0];
        const auto* words = static_cast<const std::uint64_t*>(m.payload);
        for (std::size_t i = 0; i < m.bytes / 8; ++i) {
          if (words[i] != i + static_cast<std::uint64_t>(round)) return "altered";
        }
        wire.release(m.token);
      }
      events.clear();
    }
    return {};
  }));
}

TEST(WireOfProcesses, TellsWhoWasKilledAfterItsLastMessages) {
  Scoreboard* board = makeScoreboard();
  auto children = wiresOf(3, [&](Wire& wire, int rank) -> std::string {
    WireEvents events;
    if (rank == 2) {
      auto* memory = static_cast<int*>(wire.allocate(4096));
      *memory = 77;
      for (int to = 0; to < 2; ++to) sendText(wire, to, "last words", memory, 4096, 1);
      ++board->ready;
      board->waitFor(board->go, 1);
      return "not killed";
    }
    auto* memory = wire.allocate(64);
    sendText(wire, 2, "never released", memory, 64, 9);
    if (!pollUntil(wire, events, [&] { return !events.lost.empty(); })) return "not told";
    if (events.lost != std::vector<int>{2}) return "told another";
    if (events.messages.size() != 1 || headerOf(events.messages[0]) != "last words") {
      return "its last words are missing";
    }
    if (*static_cast<const int*>(events.messages[0].payload) != 77) return "altered";
    if (events.sent != std::vector<std::uint64_t>{9}) return "the ticket is not told";
    wire.release(events.messages[0].token);
    return {};
  });
  board->waitFor(board->ready, 1);
  children[2].kill();
  EXPECT_EQ(children[2].wait(), "killed");
  EXPECT_EQ(children[0].wait(), "");
  EXPECT_EQ(children[1].wait(), "");
}

TEST(WireOfProcesses, EndsItsCloseWhenTheReceiverNeverReleases) {
  Scoreboard* board = makeScoreboard();
  expectFine(wiresOf(2, [&](Wire& wire, int rank) -> std::string {
    if (rank == 0) {
      sendText(wire, 1, "x", wire.allocate(64), 64, 1);
      wire.close(Deadline::in(50));
      ++board->go;
      return {};
    }
    board->waitFor(board->go, 1);
    WireEvents events;
    if (!pollUntil(wire, events, [&] { return !events.left.empty(); })) return "not told";
    return events.messages.size() == 1 ? "" : "the message is missing";
  }));
}

}  // namespace
}  // namespace gradlink::test
