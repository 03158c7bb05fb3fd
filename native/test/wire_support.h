// What tests of wires share: polling until something has come.
#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/wire.h"

namespace gradlink::test {

/// Adds to `events` until enough() or for too long, which is a failure of the test: false.
inline bool pollUntil(Wire& wire, WireEvents& events, const std::function<bool()>& enough) {
  const Deadline deadline = Deadline::in(20000);
  while (!enough()) {
    if (deadline.passed()) return false;
    wire.poll(events, deadline);
  }
  return true;
}

inline std::string headerOf(const WireMessage& message) {
  return {reinterpret_cast<const char*>(message.header.data()), message.header.size()};
}

inline void sendText(Wire& wire, int to, const std::string& header, const void* payload = nullptr,
                     std::size_t bytes = 0, std::uint64_t ticket = 0) {
  wire.send(to, std::as_bytes(std::span(header)), payload, bytes, ticket);
}

/// The number that a test's messages carry.
inline std::uint64_t numberOf(const WireMessage& message) {
  std::uint64_t number = 0;
  std::memcpy(&number, message.header.data(), sizeof(number));
  return number;
}

/// A header of `bytes` (at least 8) that begins with the number and is otherwise made of it.
inline std::vector<std::byte> numbered(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> header(bytes, static_cast<std::byte>(number * 7));
  std::memcpy(header.data(), &number, sizeof(number));
  return header;
}

/// Every rank sends `count` messages to every other (and to itself), of changing lengths, half of
/// them with a payload; the receivers check order and contents and release at once or later, in
/// another order. Returns what is wrong.
inline std::string exchange(Wire& wire, std::uint64_t count) {
  const auto size = static_cast<std::size_t>(wire.size());
  constexpr std::size_t kSlots = 8;
  constexpr std::size_t kSlotWords = 512;
  auto* memory = static_cast<std::uint64_t*>(
      wire.allocate(size * kSlots * kSlotWords * sizeof(std::uint64_t)));
  std::vector<std::uint64_t> next(size, 0);
  std::vector<std::uint64_t> got(size, 0);
  std::vector<std::vector<std::size_t>> idle(size);
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t s = 0; s < kSlots; ++s) idle[r].push_back(r * kSlots + s);
  }
  std::size_t pending = 0;
  WireEvents events;
  std::vector<std::uint64_t> held;
  std::string wrong;
  auto done = [&] {
    for (std::size_t r = 0; r < size; ++r) {
      if (next[r] < count || got[r] < count) return false;
    }
    return pending == 0;
  };
  const Deadline deadline = Deadline::in(60000);
  while (!done() && wrong.empty()) {
    if (deadline.passed()) return "the exchange takes too long";
    for (std::size_t r = 0; r < size; ++r) {
      while (next[r] < count) {
        const std::uint64_t n = next[r];
        const auto header = numbered(n, 8 + n * 13 % (Wire::kMostHeaderBytes - 7));
        if (n % 2 == 0) {
          wire.send(static_cast<int>(r), header, nullptr, 0, 0);
        } else {
          if (idle[r].empty()) break;
          const std::size_t slot = idle[r].back();
          idle[r].pop_back();
          std::uint64_t* words = memory + slot * kSlotWords;
          const std::size_t used = 1 + n % kSlotWords;
          for (std::size_t i = 0; i < used; ++i) {
            words[i] = n * 1000003 + static_cast<std::uint64_t>(wire.rank()) * 101 + i;
          }
          wire.send(static_cast<int>(r), header, words, used * 8, slot + 1);
          ++pending;
        }
        ++next[r];
      }
    }
    wire.poll(events, done() ? Deadline::in(0) : deadline);
    for (const WireMessage& m : events.messages) {
      const auto source = static_cast<std::size_t>(m.source);
      const std::uint64_t n = numberOf(m);
      if (n != got[source]++) wrong = "out of order";
      const auto header = numbered(n, 8 + n * 13 % (Wire::kMostHeaderBytes - 7));
      if (m.header.size() != header.size() ||
          std::memcmp(m.header.data(), header.data(), header.size()) != 0) {
        wrong = "the header was altered";
      }
      if ((n % 2 == 0) != (m.payload == nullptr)) wrong = "a payload too many or too few";
      if (m.payload != nullptr) {
        const auto* words = static_cast<const std::uint64_t*>(m.payload);
        if (m.bytes != (1 + n % kSlotWords) * 8) wrong = "the payload's length was altered";
        for (std::size_t i = 0; i < m.bytes / 8; ++i) {
          if (words[i] != n * 1000003 + static_cast<std::uint64_t>(m.source) * 101 + i) {
            wrong = "the payload was altered";
          }
        }
      }
      if (n % 3 == 0) {
        wire.release(m.token);
      } else {
        held.push_back(m.token);
      }
    }
    for (const std::uint64_t ticket : events.sent) {
      idle[(ticket - 1) / kSlots].push_back(ticket - 1);
      --pending;
    }
    if (!events.lost.empty()) wrong = "a rank was lost";
    events.clear();
    // Later and backwards, so that receipts do not come in the order of the messages.
    while (!held.empty()) {
      wire.release(held.back());
      held.pop_back();
    }
  }
  if (wrong.empty()) wire.deallocate(memory);
  return wrong;
}

}  // namespace gradlink::test
