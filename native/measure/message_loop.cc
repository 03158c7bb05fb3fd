#include "measure/message_loop.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "core/error.h"
#include "measure/page_buffer.h"
#include "measure/pattern.h"

namespace gradlink::measure {
namespace {

constexpr int kMessageLoopTag = 0;

void checkMessages(const Communicator& comm, const MessageOptions& options) {
  const auto require = [](bool good, const std::string& message) {
    if (!good)
      throw Error(ErrorCode::invalidArgument, message).withOp("timeMessages").stillUsable();
  };
  const int rank = comm.heldRanks().front();
  require(comm.heldRanks().size() == 1, "the communicator must hold one rank");
  require(options.peer >= 0 && options.peer < comm.size() && options.peer != rank,
          "peer must be another rank below " + std::to_string(comm.size()) + ", got " +
              std::to_string(options.peer));
  require(options.window >= 1, "window must be at least 1, got " + std::to_string(options.window));
  require(options.samples >= 1,
          "samples must be at least 1, got " + std::to_string(options.samples));
  require(options.warmup >= 0, "warmup must be at least 0, got " + std::to_string(options.warmup));
}

class MessageArrays {
 public:
  MessageArrays(Communicator& comm, const MessageOptions& options)
      : comm_(comm),
        options_(options),
        call_{options.timeoutMs},
        sent_(options.first ? options.bytes : options.answerBytes),
        came_(options.first ? options.answerBytes : options.bytes),
        out_(allocatePages(sent_)),
        in_(allocatePages(came_)) {
    // Copies use the pattern of max, whose values span the whole type.
    pattern_.dtype = DType::uint8;
    pattern_.op = ReduceOp::max;
    pattern_.size = comm.size();
    if (sent_ > 0) fillPattern(out_.get(), 0, sent_, pattern_, comm.heldRanks().front());
    spoil();
  }

  /// Overwrites the receive array, so an earlier message cannot pass; also touches the memory.
  void spoil() {
    if (came_ == 0) return;
    fillPattern(in_.get(), 0, came_, pattern_, options_.peer);
    auto* const bytes = static_cast<std::uint8_t*>(in_.get());
    std::transform(bytes, bytes + came_, bytes,
                   [](std::uint8_t byte) { return static_cast<std::uint8_t>(~byte); });
  }

  std::uint64_t countWrong() const {
    return came_ == 0 ? 0 : countWrongInput(in_.get(), 0, came_, pattern_, options_.peer);
  }

  /// The window and its answer.
  void exchange() {
    if (options_.first) {
      for (int i = 0; i < options_.window; ++i) send();
      receive();
    } else {
      for (int i = 0; i < options_.window; ++i) receive();
      send();
    }
  }

 private:
  void send() {
    comm_.send(out_.get(), sent_, DType::uint8, options_.peer, kMessageLoopTag, call_);
  }
  void receive() {
    comm_.receive(in_.get(), came_, DType::uint8, options_.peer, kMessageLoopTag, call_);
  }

  Communicator& comm_;
  const MessageOptions& options_;
  const CallOptions call_;
  const std::size_t sent_;
  const std::size_t came_;
  PageBuffer out_;
  PageBuffer in_;
  Pattern pattern_;
};

}  // namespace

MessageResult timeMessages(Communicator& comm, const MessageOptions& options) {
  using Clock = std::chrono::steady_clock;
  checkMessages(comm, options);
  MessageArrays arrays(comm, options);
  MessageResult result;
  if (options.verify) {
    arrays.exchange();
    result.wrong += arrays.countWrong();
  }
  for (int i = 0; i < options.warmup; ++i) arrays.exchange();
  if (options.first) result.seconds.reserve(static_cast<std::size_t>(options.samples));
  for (int sample = 0; sample < options.samples; ++sample) {
    if (options.verify && sample + 1 == options.samples) arrays.spoil();
    const auto start = Clock::now();
    arrays.exchange();
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    if (options.first) result.seconds.push_back(elapsed.count());
  }
  if (options.verify) result.wrong += arrays.countWrong();
  return result;
}

}  // namespace gradlink::measure
