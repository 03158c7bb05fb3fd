// The rank that bound an address of a rendezvous: it checks guests, passes the memory, starts all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/deadline.h"
#include "shm/rendezvous/packets.h"
#include "shm/rendezvous/rendezvous.h"

namespace gradlink::shm {

class Leader {
 public:
  Leader(const JoinOptions& options, Deadline deadline, File listener, int number);

  /// Empty if another rank leads at an earlier address: the caller starts over.
  std::optional<Membership> run();

 private:
  struct Guest {
    File socket;
    std::string nonce;  // ours, for this connection
    Deadline deadline;
    std::uint64_t number = 0;
    int rank = -1;
    bool ready = false;
    bool proven() const { return rank >= 0; }
  };

  std::vector<int> missing() const;
  [[noreturn]] void fail(const Error& error);
  [[noreturn]] void failMissing();
  bool ledElsewhere();
  void turn(const SegmentFiles& files);
  void admit(const File& listener);
  void dropStrangers();
  bool dropOldestStranger();
  void drop(int descriptor);
  void hear(int descriptor, const SegmentFiles& files);
  bool greet(Guest& guest, const Packet& hello, std::string_view text, const SegmentFiles& files);

  const JoinOptions& options_;
  Deadline deadline_;
  std::vector<File> listeners_;
  /// Earlier addresses that others hold.
  std::vector<int> earlier_;
  Deadline nextLook_ = Deadline::in(0);
  std::map<int, Guest> guests_;
  std::size_t ready_ = 0;
  std::uint64_t admitted_ = 0;
  /// Connections closed before they had proved anything.
  std::size_t turnedAway_ = 0;
};

}  // namespace gradlink::shm
