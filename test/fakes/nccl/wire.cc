#include "nccl/wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "nccl/address.h"

namespace gradlink::fake {
namespace {

enum class Verb : std::int32_t { join, collective, exchange };

/// What precedes every request; then messages (of an exchange) and the bytes that go in.
struct Request {
  Verb verb = Verb::join;
  RankInfo info;
  Step step;
  double clock = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};
/// What precedes every answer; then the ranks' GPUs (of a join) or the bytes that go out.
struct Answer {
  Joining joining = Joining::cut;
  std::int32_t done = 0;
  double clock = 0;
  std::uint64_t bytes = 0;
};

bool sendAll(int socket, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receiveAll(int socket, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, MSG_WAITALL);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

// ---- the hub's side

struct Received {
  Request request;
  std::vector<Message> messages;
  std::vector<std::byte> in;
};

/// One rank of another process. One thread reads what it asks for and notices its end; another
/// carries it out, and may block in the hub.
class Visitor {
 public:
  Visitor(int socket, std::shared_ptr<Hub> hub) : socket_(socket), hub_(std::move(hub)) {}
  ~Visitor() { ::close(socket_); }

  /// Nobody waits for the two: the process may end before the rank of the other does.
  static void start(int socket, std::shared_ptr<Hub> hub) {
    const auto visitor = std::make_shared<Visitor>(socket, std::move(hub));
    std::thread([visitor] { visitor->readAll(); }).detach();
    std::thread([visitor] { visitor->work(); }).detach();
  }

 private:
  void readAll() {
    int rank = -1;
    for (;;) {
      Received received;
      if (!read(received)) break;
      rank = received.request.info.rank;
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(received));
      wake_.notify_one();
    }
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      wake_.notify_one();
    }
    // Aborted, closed or killed: whatever it is in, it is no more.
    if (rank >= 0) hub_->cut(rank);
  }

  bool read(Received& received) {
    if (!receiveAll(socket_, &received.request, sizeof(Request))) return false;
    received.messages.resize(received.request.messages);
    received.in.resize(received.request.bytes);
    return receiveAll(socket_, received.messages.data(),
                      received.messages.size() * sizeof(Message)) &&
           receiveAll(socket_, received.in.data(), received.in.size());
  }

  void work() {
    for (;;) {
      Received next;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return ended_ || !queue_.empty(); });
        if (queue_.empty()) return;
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      if (!answer(next)) return;
    }
  }

  bool answer(Received& received) {
    const Request& request = received.request;
    Answer answer;
    answer.clock = request.clock;
    std::vector<std::byte> out;
    if (request.verb == Verb::join) {
      std::vector<int> devices;
      answer.joining = hub_->join(request.info, devices);
      out.resize(devices.size() * sizeof(int));
      if (!devices.empty()) std::memcpy(out.data(), devices.data(), out.size());
    } else if (request.verb == Verb::collective) {
      out.resize(outBytes(request.step, request.info.rank, request.info.size));
      const Entry entry{request.step, received.in.data(), out.data()};
      answer.done = hub_->collective(request.info.rank, entry, answer.clock, true) ? 1 : 0;
    } else {
      answer.done = exchange(received, out, answer.clock) ? 1 : 0;
    }
    answer.bytes = out.size();
    const bool sent =
        sendAll(socket_, &answer, sizeof(answer)) && sendAll(socket_, out.data(), out.size());
    if (answer.done != 0) hub_->answered();
    return sent;
  }

  bool exchange(Received& received, std::vector<std::byte>& out, double& clock) {
    std::size_t bytes = 0;
    for (const Message& message : received.messages) bytes += message.isSend ? 0 : message.bytes;
    out.resize(bytes);
    std::byte* from = received.in.data();
    std::byte* to = out.data();
    for (Message& message : received.messages) {
      std::byte*& at = message.isSend != 0 ? from : to;
      message.data = at;
      at += message.bytes;
    }
    return hub_->exchange(received.request.info.rank, received.messages, clock, true);
  }

  int socket_;
  std::shared_ptr<Hub> hub_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Received> queue_;
  bool ended_ = false;
};

// ---- the rank's side

class RemotePort final : public Port {
 public:
  explicit RemotePort(const std::string& name) : address_(name) {}
  ~RemotePort() override {
    if (socket_ >= 0) ::close(socket_);
  }

  Joining join(const RankInfo& info, std::vector<int>& devices) override {
    info_ = info;
    if (!connect()) return Joining::cut;
    Request request;
    Answer answer;
    if (!ask(request, {}, answer)) return Joining::cut;
    devices.resize(answer.bytes / sizeof(int));
    if (!receiveAll(socket_, devices.data(), answer.bytes)) return Joining::cut;
    return answer.joining;
  }

  bool collective(const Entry& entry, double& clock) override {
    Request request;
    request.verb = Verb::collective;
    request.step = entry.step;
    request.clock = clock;
    request.bytes = inBytes(entry.step, info_.rank, info_.size);
    Answer answer;
    if (!ask(request, {{entry.in, request.bytes}}, answer) || answer.done == 0) return false;
    clock = answer.clock;
    return receiveAll(socket_, entry.out, answer.bytes);
  }

  bool exchange(const std::vector<Message>& messages, double& clock) override {
    Request request;
    request.verb = Verb::exchange;
    request.clock = clock;
    request.messages = messages.size();
    std::vector<Piece> pieces{{messages.data(), messages.size() * sizeof(Message)}};
    for (const Message& message : messages) {
      if (message.isSend == 0) continue;
      pieces.push_back({message.data, message.bytes});
      request.bytes += message.bytes;
    }
    Answer answer;
    if (!ask(request, pieces, answer) || answer.done == 0) return false;
    clock = answer.clock;
    for (const Message& message : messages) {
      if (message.isSend == 0 && !receiveAll(socket_, message.data, message.bytes)) return false;
    }
    return true;
  }

  void flush() override {}

  void cut() override {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
  }

 private:
  struct Piece {
    const void* data;
    std::size_t bytes;
  };

  /// The process that has the hub may be late, or never come.
  bool connect() {
    for (;;) {
      const int socket = ::socket(address_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (socket < 0) return false;
      const bool connected = ::connect(socket, address_.get(), address_.length) == 0;
      {
        const std::lock_guard lock(mutex_);
        if (connected && !cut_) {
          socket_ = socket;
          return true;
        }
        if (cut_) {
          ::close(socket);
          return false;
        }
      }
      ::close(socket);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  bool ask(Request& request, const std::vector<Piece>& pieces, Answer& answer) {
    request.info = info_;
    if (!sendAll(socket_, &request, sizeof(request))) return false;
    for (const Piece& piece : pieces) {
      if (!sendAll(socket_, piece.data, piece.bytes)) return false;
    }
    return receiveAll(socket_, &answer, sizeof(answer));
  }

  Address address_;
  RankInfo info_;
  std::mutex mutex_;  // over socket_ and cut_ until connected; then socket_ stays
  int socket_ = -1;
  bool cut_ = false;
};

}  // namespace

std::string serve(const std::string& token, std::shared_ptr<Hub> hub) {
  Listener made = listenAs(token);
  if (made.socket < 0) return made.name;
  // As the library's own meeting point does, it waits for ranks that may never come, and ends when
  // all have.
  hub->whenMet([listener = made.socket] { ::shutdown(listener, SHUT_RDWR); });
  std::thread([listener = made.socket, hub = std::move(hub)] {
    for (;;) {
      const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) break;
      Visitor::start(socket, hub);
    }
    ::close(listener);
  }).detach();
  return made.name;
}

std::unique_ptr<Port> connectPort(const std::string& name) {
  return std::make_unique<RemotePort>(name);
}

}  // namespace gradlink::fake
