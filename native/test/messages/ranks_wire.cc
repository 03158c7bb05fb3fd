// Wires between the ranks of an MPI job.
#include <algorithm>
#include <atomic>
#include <thread>

#include "test/messages/ranks.h"
#include "test/wire_support.h"

namespace gradlink::test {
namespace {

const Register kExchange("wire-exchange", [](const auto&) -> std::string {
  auto comm = joinAll();
  auto wire = comm->openWire();
  // A wire does not end with its communicator.
  comm->close();
  std::string wrong = exchange(*wire, 2000);
  wire->close(Deadline::in(20000));
  return wrong;
});

// Long payloads overtake nothing, and short ones do not overtake them.
const Register kLong("wire-long", [](const auto&) -> std::string {
  auto comm = joinAll();
  auto wire = comm->openWire();
  constexpr std::size_t kMost = 700001;
  constexpr int kCount = 60;
  const auto lengthOf = [](int i) { return static_cast<std::size_t>(i * 977 * 31) % kMost; };
  std::string wrong;
  WireEvents events;
  if (wire->rank() > 0) {
    std::size_t words = 0;
    for (int i = 0; i < kCount; ++i) words += lengthOf(i);
    auto* memory = static_cast<std::uint32_t*>(wire->allocate(words * 4));
    std::uint32_t* at = memory;
    for (int i = 0; i < kCount; ++i) {
      std::fill_n(at, lengthOf(i), static_cast<std::uint32_t>(i + wire->rank() * 1000));
      wire->send(0, numbered(static_cast<std::uint64_t>(i), 40), lengthOf(i) == 0 ? nullptr : at,
                 lengthOf(i) * 4, static_cast<std::uint64_t>(i + 1));
      at += lengthOf(i);
    }
    if (!pollUntil(*wire, events, [&] { return events.sent.size() == kCount; })) {
      return "not all tickets are told";
    }
    wire->deallocate(memory);
    if (wire->bytesSent()[0] != words * 4 + kCount * 40) return "the bytes sent are miscounted";
  } else {
    std::vector<int> next(static_cast<std::size_t>(wire->size()), 0);
    std::size_t left = static_cast<std::size_t>(kCount) * (next.size() - 1);
    while (left > 0 && wrong.empty()) {
      if (!pollUntil(*wire, events, [&] { return !events.messages.empty(); })) return "nothing";
      for (const WireMessage& m : events.messages) {
        const int i = next[static_cast<std::size_t>(m.source)]++;
        const auto* words = static_cast<const std::uint32_t*>(m.payload);
        if (numberOf(m) != static_cast<std::uint64_t>(i)) wrong = "out of order";
        if (m.bytes != lengthOf(i) * 4) wrong = "another length";
        if (!std::all_of(words, words + m.bytes / 4, [&](std::uint32_t w) {
              return w == static_cast<std::uint32_t>(i + m.source * 1000);
            })) {
          wrong = "the payload was altered";
        }
        wire->release(m.token);
        --left;
      }
      events.clear();
    }
  }
  wire->close(Deadline::in(20000));
  return wrong;
});

const Register kGoodbye("wire-goodbye", [](const auto&) -> std::string {
  auto comm = joinAll();
  auto wire = comm->openWire();
  WireEvents events;
  if (wire->rank() == 0) {
    auto* memory = static_cast<std::uint64_t*>(wire->allocate(1 << 20));
    memory[5] = 5;
    for (int r = 1; r < wire->size(); ++r) sendText(*wire, r, "last", memory, 1 << 20, 1);
    // Delivers it first.
    wire->close(Deadline::in(20000));
    return {};
  }
  // The others may have gone by then, too.
  const auto rankZeroLeft = [&] {
    return std::count(events.left.begin(), events.left.end(), 0) == 1;
  };
  if (!pollUntil(*wire, events, rankZeroLeft)) return "no goodbye";
  if (events.messages.size() != 1 ||
      static_cast<const std::uint64_t*>(events.messages[0].payload)[5] != 5) {
    return "the last message is missing";
  }
  // To one who has left: dropped, and told.
  events.sent.clear();
  sendText(*wire, 0, "late", wire->allocate(1 << 20), 1 << 20, 7);
  if (!pollUntil(*wire, events, [&] { return !events.sent.empty(); })) return "not told";
  wire->release(events.messages[0].token);
  wire->close(Deadline::in(20000));
  return events.sent == std::vector<std::uint64_t>{7} ? "" : "another ticket";
});

const Register kWake("wire-wake", [](const auto&) -> std::string {
  auto comm = joinAll();
  auto wire = comm->openWire();
  WireEvents events;
  // Before, and while it waits.
  wire->wake();
  wire->poll(events, Deadline::in(20000));
  std::atomic<bool> polling{false};
  std::thread waker([&] {
    while (!polling) std::this_thread::yield();
    wire->wake();
  });
  const auto before = Deadline::Clock::now();
  polling = true;
  wire->poll(events, Deadline::in(20000));
  waker.join();
  const bool waited = Deadline::Clock::now() - before >= std::chrono::seconds(20);
  comm->barrier();
  wire->close(Deadline::in(20000));
  return waited || !events.empty() ? "wake() does not end a poll" : "";
});

// From several threads while one polls, to ranks that do the same.
const Register kSenders("wire-senders", [](const auto&) -> std::string {
  auto comm = joinAll();
  auto wire = comm->openWire();
  constexpr std::uint64_t kEach = 500;
  constexpr std::size_t kThreads = 3;
  auto* memory = static_cast<std::byte*>(wire->allocate(kThreads * (64 << 10)));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::byte* own = memory + t * (64 << 10);
      std::fill_n(own, 64 << 10, static_cast<std::byte>(t));
      for (std::uint64_t i = 0; i < kEach; ++i) {
        for (int r = 0; r < wire->size(); ++r) {
          wire->send(r, numbered(t, 16), own, i % 7 == 0 ? 64 << 10 : 100, 1);
        }
      }
    });
  }
  const std::size_t total = kEach * kThreads * static_cast<std::size_t>(wire->size());
  std::size_t got = 0;
  std::size_t told = 0;
  std::string wrong;
  WireEvents events;
  while ((got < total || told < total) && wrong.empty()) {
    wire->poll(events, Deadline::in(20000));
    if (events.empty()) wrong = "nothing came for long";
    for (const WireMessage& m : events.messages) {
      const auto* bytes = static_cast<const std::byte*>(m.payload);
      if (!std::all_of(bytes, bytes + m.bytes,
                       [&](std::byte b) { return b == static_cast<std::byte>(numberOf(m)); })) {
        wrong = "the payload of another message";
      }
      wire->release(m.token);
      ++got;
    }
    told += events.sent.size();
    events.clear();
  }
  for (auto& thread : threads) thread.join();
  comm->barrier();
  wire->close(Deadline::in(20000));
  return wrong;
});

}  // namespace
}  // namespace gradlink::test
