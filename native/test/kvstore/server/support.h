// Servers with workers that speak the protocol by hand, all of them threads over a wire of the
// embedded engine.
#pragma once

#include "kvstore/protocol/protocol.h"
#include "kvstore/server/server.h"
#include "test/threads_support.h"
#include "test/wire_support.h"

namespace gradlink::test {

using dist::Header;
using dist::MessageType;

constexpr std::size_t kServerPiece = dist::pieceElements(DType::float32);

/// What a server answered.
struct Answer {
  Header header;
  std::vector<std::byte> payload;

  std::string text() const {
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(payload.size() / sizeof(T));
    std::memcpy(values.data(), payload.data(), payload.size());
    return values;
  }
};

/// A worker of one server.
class HandWorker {
 public:
  HandWorker(std::unique_ptr<Wire> wire, int workers) : wire_(std::move(wire)), server_(workers) {}

  Wire& wire() { return *wire_; }
  std::unique_ptr<Wire> takeWire() { return std::move(wire_); }
  int rank() const { return wire_->rank(); }

  void send(Header header, const void* payload = nullptr, std::size_t bytes = 0) {
    const auto head = std::as_bytes(std::span(&header, 1));
    if (bytes == 0) return wire_->send(server_, head, nullptr, 0, 0);
    void* memory = wire_->allocate(bytes);
    std::memcpy(memory, payload, bytes);
    wire_->send(server_, head, memory, bytes, reinterpret_cast<std::uintptr_t>(memory));
  }
  std::uint64_t request(MessageType type, const void* payload = nullptr, std::size_t bytes = 0,
                        std::uint8_t flags = 0) {
    Header header{type};
    header.flags = flags;
    header.request = ++requests_;
    send(header, payload, bytes);
    return header.request;
  }
  std::uint64_t requestText(MessageType type, const std::string& text) {
    return request(type, text.data(), text.size());
  }

  // ---- of the one key of a test, shard 0, of float32
  void define(std::size_t count) {
    const std::string name = "k";
    Header header{MessageType::define};
    header.dtype = DType::float32;
    header.count = count;
    header.request = 1;
    send(header, name.data(), name.size());
  }
  void init(const std::vector<float>& value) { inPieces(MessageType::init, value, 0, 0); }
  void push(const std::vector<float>& value, std::uint64_t round) {
    inPieces(MessageType::push, value, round, ++requests_);
  }
  void pushPiece(const std::vector<float>& value, std::size_t piece, std::uint64_t round) {
    onePiece(MessageType::push, value, piece, round, ++requests_);
  }
  std::uint64_t pull(std::uint64_t round) {
    Header header{MessageType::pull};
    header.round = round;
    header.request = ++requests_;
    send(header);
    return header.request;
  }

  /// The next answer to a request; answers to others are kept for later.
  Answer await(std::uint64_t request) {
    const Deadline deadline = Deadline::in(20000);
    for (;;) {
      for (auto it = answers_.begin(); it != answers_.end(); ++it) {
        if (it->header.request != request) continue;
        Answer answer = std::move(*it);
        answers_.erase(it);
        return answer;
      }
      if (deadline.passed()) throw Error(ErrorCode::timeout, "the test got no answer");
      poll(deadline);
    }
  }
  /// The whole value of `count` elements from the answers to a pull.
  std::vector<float> pulled(std::size_t count, std::uint64_t round) {
    const std::uint64_t request = pull(round);
    std::vector<float> whole(count);
    for (std::size_t pieces = (count + kStep - 1) / kStep; pieces > 0; --pieces) {
      const Answer answer = await(request);
      if (answer.header.type != MessageType::value) {
        throw Error(static_cast<ErrorCode>(answer.header.code), answer.text());
      }
      const auto part = answer.as<float>();
      std::copy(part.begin(), part.end(),
                whole.begin() + static_cast<std::ptrdiff_t>(answer.header.piece * kStep));
    }
    return whole;
  }
  /// Takes what has come, keeping payloads when told so.
  void poll(Deadline until) {
    WireEvents events;
    wire_->poll(events, until);
    for (const WireMessage& message : events.messages) {
      Answer answer{};
      std::memcpy(&answer.header, message.header.data(), sizeof(Header));
      const auto* bytes = static_cast<const std::byte*>(message.payload);
      if (bytes != nullptr) answer.payload.assign(bytes, bytes + message.bytes);
      wire_->release(message.token);
      answers_.push_back(std::move(answer));
    }
    for (const std::uint64_t ticket : events.sent) {
      wire_->deallocate(reinterpret_cast<void*>(static_cast<std::uintptr_t>(ticket)));
    }
  }
  void close() { wire_->close(Deadline::in(20000)); }

 private:
  static constexpr std::size_t kStep = dist::pieceElements(DType::float32);

  void inPieces(MessageType type, const std::vector<float>& value, std::uint64_t round,
                std::uint64_t request) {
    for (std::size_t piece = 0; piece * kStep < value.size(); ++piece) {
      onePiece(type, value, piece, round, request);
    }
  }
  void onePiece(MessageType type, const std::vector<float>& value, std::size_t piece,
                std::uint64_t round, std::uint64_t request) {
    const std::size_t first = piece * kStep;
    Header header{type};
    header.dtype = DType::float32;
    header.piece = static_cast<std::uint32_t>(piece);
    header.count = std::min(kStep, value.size() - first);
    header.round = round;
    header.request = request;
    send(header, value.data() + first, header.count * sizeof(float));
  }

  std::unique_ptr<Wire> wire_;
  int server_;
  std::uint64_t requests_ = 0;
  std::vector<Answer> answers_;
};

struct ServedRun {
  /// Of the workers, then of the server.
  std::vector<std::optional<Error>> errors;
  ServerReport report;
};

/// One server, and workers that run `body` and then close their wires.
inline ServedRun served(ServerOptions options, const std::function<void(HandWorker&)>& body,
                        const std::atomic<bool>* stop = nullptr) {
  const std::string name = freshName();
  ServedRun run;
  run.errors = onThreads(options.workers + 1, [&](int rank) {
    auto wire = shm::joinWire(optionsFor(name, rank, options.workers + 1));
    if (rank == options.workers) {
      run.report = serve(std::move(wire), options, stop);
      return;
    }
    HandWorker worker(std::move(wire), options.workers);
    body(worker);
    if (auto left = worker.takeWire()) left->close(Deadline::in(20000));
  });
  return run;
}

inline void expectServed(const ServerOptions& options,
                         const std::function<void(HandWorker&)>& body) {
  expectNone(served(options, body).errors);
}

inline ServerOptions serverOf(int workers) {
  ServerOptions options{.workers = workers, .threads = 1, .timeoutMs = 20000};
  return options;
}

}  // namespace gradlink::test
