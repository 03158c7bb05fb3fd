// Who does the work where a thread would have to be woken for it: what is small is sent by the
// thread that submits it, carried out by the server's receiving thread, and its answer handled by
// who looks for it.
#include "kvstore/protocol/protocol.h"
#include "test/kvstore/worker/support.h"

namespace gradlink::test {
namespace {

/// Notes which thread sent each push and which one took each message, and whether a poll was to end
/// for receipts.
class WatchedWire final : public Wire {
 public:
  explicit WatchedWire(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}

  int rank() const override { return wire_->rank(); }
  int size() const override { return wire_->size(); }
  const char* backend() const override { return wire_->backend(); }
  bool sharesMemoryWith(int rank) const override { return wire_->sharesMemoryWith(rank); }
  void* allocate(std::size_t bytes) override { return wire_->allocate(bytes); }
  void deallocate(void* memory) override { wire_->deallocate(memory); }
  void send(int destination, std::span<const std::byte> header, const void* payload,
            std::size_t bytes, std::uint64_t ticket) override {
    dist::Header head{};
    std::memcpy(&head, header.data(), std::min(sizeof head, header.size()));
    if (head.type == dist::MessageType::push) pushedBy = std::this_thread::get_id();
    wire_->send(destination, header, payload, bytes, ticket);
  }
  void release(std::uint64_t token) override { wire_->release(token); }
  void poll(WireEvents& events, Deadline until) override {
    wire_->poll(events, until);
    if (!events.messages.empty()) takenBy = std::this_thread::get_id();
  }
  void setReceiptsMatter(bool value) override {
    receiptsMatter = value;
    wire_->setReceiptsMatter(value);
  }
  bool pollSleeps() const override { return wire_->pollSleeps(); }
  void wake() override { wire_->wake(); }
  std::vector<std::uint64_t> bytesSent() const override { return wire_->bytesSent(); }
  std::vector<std::uint64_t> bytesReceived() const override { return wire_->bytesReceived(); }
  void close(Deadline until) override { wire_->close(until); }

  std::atomic<std::thread::id> pushedBy{};
  std::atomic<std::thread::id> takenBy{};
  std::atomic<bool> receiptsMatter{true};

 private:
  const std::unique_ptr<Wire> wire_;
};

/// A worker, and a server with two pipelines whose updater tells its thread.
struct WatchedJob {
  explicit WatchedJob(double lookNanoseconds = 0) {
    const std::string name = freshName();
    server = std::thread([this, name] {
      receiving = std::this_thread::get_id();
      ServerOptions options;
      options.threads = 2;
      options.updater = [this](const ShardUpdate& update) {
        updatedBy = std::this_thread::get_id();
        std::memcpy(update.stored, update.received, update.count * sizeof(float));
      };
      serve(wireOf(name, 1, 2), options);
    });
    auto watched = std::make_unique<WatchedWire>(wireOf(name, 0, 2));
    wire = watched.get();
    DistStoreOptions options;
    options.lookNanoseconds = lookNanoseconds;
    store = makeDistStore(std::move(watched), options);
  }
  ~WatchedJob() {
    store->stop();
    server.join();
  }

  KeyId key(const std::string& name, std::size_t count) {
    return makeKey(*store, name, Floats(count));
  }
  /// The engine sleeps, which it does soon when nothing is under way.
  void awaitSleep() const {
    waitUntil([&] { return wire->pollSleeps(); });
  }
  /// Pushes and pulls while the engine sleeps.
  void exchange(KeyId id, std::size_t count, bool here) {
    awaitSleep();
    exchangeNow(id, count, here, [] {});
  }
  void exchangeNow(KeyId id, std::size_t count, bool here, const std::function<void()>& then) {
    std::vector<Floats> in(1, Floats(count, static_cast<float>(++exchanges)));
    Floats out(count);
    Waiter waiter;
    Operation made = operation(OperationKind::pushPull, id, in, waiter.ticket());
    made.out = {out.data()};
    submitOne(*store, std::move(made), here);
    then();
    waiter.wait();
    EXPECT_EQ(out, in[0]);
  }

  int exchanges = 0;
  std::atomic<std::thread::id> receiving{};
  std::atomic<std::thread::id> updatedBy{};
  std::thread server;
  WatchedWire* wire = nullptr;
  std::unique_ptr<Store> store;
};

constexpr std::size_t kHereCount = 1024;      // 4 KiB
constexpr std::size_t kThereCount = 1 << 18;  // 1 MiB
// Whether the engine sleeps is a matter of moments, which a loaded machine and ThreadSanitizer make
// few.
constexpr int kTries = 3000;

TEST(WakeUps, TheSubmittingThreadSendsWhatIsSmall) {
  WatchedJob job;
  const KeyId small = job.key("small", kHereCount);
  const KeyId large = job.key("large", kThereCount);
  const auto self = std::this_thread::get_id();
  // Between the look at it and the call the engine may be awake for a moment, to look after peers.
  bool sent = false;
  for (int i = 0; i < kTries && !sent; ++i) {
    job.exchange(small, kHereCount, true);
    sent = job.wire->pushedBy.load() == self;
  }
  EXPECT_TRUE(sent);
  for (int i = 0; i < 5; ++i) {
    job.exchange(small, kHereCount, false);
    EXPECT_NE(job.wire->pushedBy.load(), self) << "who does not allow it is not made to send";
    job.exchange(large, kThereCount, true);
    EXPECT_NE(job.wire->pushedBy.load(), self) << "who submits should not copy for long";
  }
}

TEST(WakeUps, TheReceivingThreadAnswersWhatIsSmall) {
  WatchedJob job;
  const KeyId small = job.key("small", kHereCount);
  bool answered = false;
  for (int i = 0; i < kTries && !answered; ++i) {
    job.exchange(small, kHereCount, true);
    answered = job.updatedBy.load() == job.receiving.load();
  }
  EXPECT_TRUE(answered);
}

TEST(WakeUps, ReceiptsWakeOnlyAnEngineThatWaitsForBuffers) {
  WatchedJob job;
  const KeyId small = job.key("small", kHereCount);
  job.exchange(small, kHereCount, true);
  job.awaitSleep();
  EXPECT_FALSE(job.wire->receiptsMatter.load());
}

TEST(WakeUps, WhoLooksTakesTheAnswer) {
  WatchedJob job(1e9);
  const KeyId small = job.key("small", kHereCount);
  const auto self = std::this_thread::get_id();
  // The first answers are the engine's, which then rests; later it is awake for a moment at times.
  bool taken = false;
  for (int i = 0; i < kTries && !taken; ++i) {
    job.exchangeNow(small, kHereCount, true, [&] {
      while (job.store->look()) {
      }
    });
    taken = job.wire->takenBy.load() == self;
  }
  EXPECT_TRUE(taken);
  EXPECT_FALSE(job.store->look()) << "nothing is on its way";
}

TEST(WakeUps, WhatNobodyLooksForIsAnsweredToo) {
  WatchedJob job(1e9);
  const KeyId small = job.key("small", kHereCount);
  for (int i = 0; i < 4; ++i) job.exchangeNow(small, kHereCount, true, [] {});
  EXPECT_NE(job.wire->takenBy.load(), std::this_thread::get_id());
}

TEST(WakeUps, TheEngineGoesOnWhereLookingTakesTooLong) {
  WatchedJob job(1);
  const KeyId small = job.key("small", kHereCount);
  for (int i = 0; i < 200; ++i) {
    job.exchangeNow(small, kHereCount, true, [&] { EXPECT_FALSE(job.store->look()); });
  }
}

TEST(WakeUps, WhatComesWhileSomebodyLooksIsNotLeftBehind) {
  WatchedJob job(1e9);
  const KeyId small = job.key("small", kHereCount);
  const KeyId large = job.key("large", kThereCount);
  for (int i = 0; i < 20; ++i) {
    job.exchangeNow(small, kHereCount, true, [&] {
      job.store->look();
      job.exchangeNow(large, kThereCount, i % 2 == 0, [] {});
    });
  }
}

}  // namespace
}  // namespace gradlink::test
