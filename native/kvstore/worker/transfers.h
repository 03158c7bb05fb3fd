// Everything pending between a worker's keys and its servers, and what is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/kernels/store_style.h"
#include "kvstore/worker/server_link.h"
#include "kvstore/worker/transfer.h"
#include "kvstore/worker/window.h"

namespace gradlink::dist {

/// Finished tickets and their errors; the engine finishes them under its lock.
using Finished = std::vector<std::pair<std::shared_ptr<Ticket>, std::exception_ptr>>;

/// For the engine's thread.
class Transfers {
 public:
  /// `order`: of the keys that have something to send.
  Transfers(ServerLink& link, KeyOrder<DistKey>& order, std::size_t mostStagedBytes,
            Finished& finished);

  /// Before the key's first operation.
  void define(DistKey&);

  /// Sends what it can, the most urgent key first, but not for long: the engine must poll the wire.
  void sendSome();
  /// Whether sendSome() has more to do; false if it waits for servers.
  bool canSend() const { return !order_.empty() && !blocked_; }
  bool awaitsReceipts() const { return blocked_ || !lending_.empty(); }
  /// When to call it again without an event; never if it waits for nothing.
  Deadline nextLook() const;

  /// Handles a `value`; settle() copies it at the latest, and releases the message.
  void value(const Header&, const WireMessage&);
  void settle();
  /// Handles a `failed` with a request.
  void failed(const Header&, const std::exception_ptr&);
  void released(WireBuffer*);

  /// `touched`: see ResultStores.
  void setTouched(std::size_t touched) { results_ = {touched, kDelivering}; }
  /// From now on pushes are misuse.
  void leave() { left_ = true; }
  void failAll(std::span<DistKey* const> keys, const std::exception_ptr&);
  /// The oldest transfer that waits for a server; null if none does.
  const Transfer* oldest() const;

  double copySeconds() const { return copySeconds_; }

 private:
  /// A piece and its buffer, on the way to a server or from one.
  struct Outgoing {
    Piece piece;
    WireBuffer* buffer;
    std::size_t bytes;
  };
  struct Incoming {
    Transfer* transfer;
    Piece piece;
    WireMessage message;
  };

  static constexpr std::uint32_t kDelivering = ResultStores::kStoreWorks + 0x100;

  bool begin(DistKey&);
  void askForRows(const Transfer&);
  void askForValue(Transfer&);
  Header pushHeader(const Transfer&) const;
  std::size_t lend(Transfer&);
  void returned(std::uint64_t request);
  std::size_t stage(Transfer&, std::size_t budget);
  void encodeAll(Transfer&);
  void sendAll(Transfer&);
  void settleSent(Transfer&);
  void finishFirst(DistKey&, const std::exception_ptr&);
  void finish(Transfer&, const std::exception_ptr&);
  void finishTickets(std::vector<std::shared_ptr<Ticket>>, const std::exception_ptr&);

  ServerLink& link_;
  Finished& finished_;
  PushWindow window_;
  KeyOrder<DistKey>& order_;
  std::unordered_map<std::uint64_t, Transfer*> waiting_;  // by request; those that expect values
  std::unordered_map<std::uint64_t, Transfer*> lending_;  // by request
  std::unordered_map<std::uint32_t, DistKey*> keyOfShard_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::uint64_t lastRequest_ = 0;
  /// The window did not take the most urgent key's next piece.
  bool blocked_ = false;
  ResultStores results_;
  bool left_ = false;
  StoreStyle style_;
  double copySeconds_ = 0;
};

}  // namespace gradlink::dist
