// What a worker makes of servers and workers that fail, of refusals, and of silence.
#include "kvstore/protocol/protocol.h"
#include "kvstore/worker/terms.h"
#include "test/kvstore/worker/support.h"
#include "test/thrown.h"
#include "test/wire_support.h"

namespace gradlink::test {
namespace {

using dist::Header;
using dist::MessageType;

/// A server that does what a test says: keeps what was initialised or pushed last, and answers.
class ScriptedServer {
 public:
  ScriptedServer(const std::string& name, int rank, int size) : wire_(wireOf(name, rank, size)) {}

  /// Takes messages until one of this type has come, which it returns; its payload is void, unless
  /// it is held.
  Header await(MessageType type, bool holds = false) {
    while (true) {
      while (next_ < events_.messages.size()) {
        const WireMessage message = events_.messages[next_++];
        Header header;
        std::memcpy(&header, message.header.data(), sizeof header);
        const bool found = header.type == type;
        if (found && holds) {
          held_ = message.token;
        } else {
          wire_->release(message.token);
        }
        if (found) return header;
      }
      events_.clear();
      next_ = 0;
      if (!pollUntil(*wire_, events_, [&] { return !events_.messages.empty() || left(); })) {
        throw Error(ErrorCode::timeout, "the test's server waited in vain");
      }
      if (events_.messages.empty()) throw Error(ErrorCode::closed, "the workers have left");
    }
  }
  /// Until every worker is gone.
  void awaitEnd() {
    std::size_t gone = 0;
    const auto workers = static_cast<std::size_t>(wire_->rank());
    WireEvents events;
    while (pollUntil(*wire_, events, [&] { return !events.empty(); })) {
      for (const WireMessage& message : events.messages) wire_->release(message.token);
      gone += events.left.size() + events.lost.size();
      events.clear();
      if (gone == workers) return;
    }
  }

  void answer(const Header& question, MessageType type, const std::string& text = "",
              ErrorCode code = ErrorCode::invalidArgument, int blame = -1) {
    Header header = question;
    header.type = type;
    header.code = static_cast<std::int32_t>(code);
    header.blame = blame;
    void* payload = nullptr;
    if (!text.empty()) {
      payload = wire_->allocate(text.size());
      std::memcpy(payload, text.data(), text.size());
    }
    wire_->send(0, std::as_bytes(std::span(&header, 1)), payload, text.size(), ++ticket_);
  }
  void value(const Header& question, const Floats& value) {
    Header header = question;
    header.type = MessageType::value;
    header.piece = 0;
    header.count = value.size();
    void* const payload = wire_->allocate(value.size() * sizeof(float));
    std::memcpy(payload, value.data(), value.size() * sizeof(float));
    wire_->send(0, std::as_bytes(std::span(&header, 1)), payload, value.size() * sizeof(float),
                ++ticket_);
  }
  void releaseHeld() { wire_->release(std::exchange(held_, 0)); }
  void leave() { wire_->close(Deadline::in(20000)); }

 private:
  bool left() const { return !events_.left.empty() || !events_.lost.empty(); }

  std::unique_ptr<Wire> wire_;
  WireEvents events_;
  std::size_t next_ = 0;
  std::uint64_t ticket_ = 0;
  std::uint64_t held_ = 0;
};

/// One worker and one scripted server.
void runScripted(const std::function<void(Store&)>& worker,
                 const std::function<void(ScriptedServer&)>& server, double timeoutMs = 20000) {
  const std::string name = freshName();
  const DistJob job{.timeoutMs = timeoutMs};
  expectNone(onThreads(2, [&](int rank) {
    if (rank == 0) {
      const auto store = workerOf(job, name, 0);
      worker(*store);
      store->stop();
    } else {
      ScriptedServer scripted(name, 1, 2);
      server(scripted);
    }
  }));
}

/// Runs it, which must fail so.
void expectFails(ErrorCode code, std::string_view text, const std::function<void()>& body) {
  const std::string message = messageOf(code, body);
  EXPECT_EQ(lacking(message, {text}), "") << message;
}

TEST(DistFailure, ALostServerIsNamedAndEndsWhatWaitsAndWhatComes) {
  runScripted(
      [](Store& store) {
        const KeyId key = makeKey(store, "key", Floats(100));
        std::vector<Floats> values{Floats(100, 7)};
        expectFails(ErrorCode::peerLost, "server 0",
                    [&] { run(store, OperationKind::pull, key, values); });
        EXPECT_EQ(values[0], Floats(100, 7));
        expectFails(ErrorCode::peerLost, "server 0",
                    [&] { run(store, OperationKind::push, key, values); });
        expectFails(ErrorCode::peerLost, "server 0", [&] { meet(store); });
        EXPECT_EQ(store.deadNodes(), 1);
      },
      [](ScriptedServer& server) { server.await(MessageType::pull); });
}

TEST(DistFailure, AServerThatLeavesInUseIsAnError) {
  runScripted(
      [](Store& store) {
        const KeyId key = makeKey(store, "key", Floats(100));
        std::vector<Floats> values{Floats(100)};
        expectFails(ErrorCode::peerLost, "server 0 has left",
                    [&] { run(store, OperationKind::pull, key, values); });
        EXPECT_EQ(store.deadNodes(), 0);
      },
      [](ScriptedServer& server) {
        server.await(MessageType::pull);
        server.leave();
      });
}

/// By its answer whatever the server has sent before has come.
void hearServer(Store& store) {
  waitFor([&](auto ticket) { store.command("sendCommandToServers", "hello", ticket); });
}

TEST(DistFailure, ARefusedPushIsToldByTheKeysNextOperationOrTheBarrier) {
  runScripted(
      [](Store& store) {
        const KeyId key = makeKey(store, "key", Floats(100));
        std::vector<Floats> values{Floats(100, 1)};
        run(store, OperationKind::push, key, values);
        hearServer(store);
        expectFails(ErrorCode::invalidArgument, "refused once",
                    [&] { run(store, OperationKind::pull, key, values); });
        run(store, OperationKind::pull, key, values);
        EXPECT_EQ(values[0], Floats(100, 5));
        run(store, OperationKind::push, key, values);
        hearServer(store);
        expectFails(ErrorCode::invalidArgument, "refused again", [&] { meet(store); });
        run(store, OperationKind::push, key, values);
        // The refusal comes after the question, before the answer.
        expectFails(ErrorCode::invalidArgument, "refused late", [&] { meet(store); });
        meet(store);
      },
      [](ScriptedServer& server) {
        const auto done = [&](MessageType type) {
          server.answer(server.await(type), MessageType::done);
        };
        server.answer(server.await(MessageType::push), MessageType::failed, "refused once");
        done(MessageType::command);
        server.value(server.await(MessageType::pull), Floats(100, 5));
        server.answer(server.await(MessageType::push), MessageType::failed, "refused again");
        done(MessageType::command);
        done(MessageType::barrier);
        const Header push = server.await(MessageType::push);
        const Header barrier = server.await(MessageType::barrier);
        server.answer(push, MessageType::failed, "refused late");
        server.answer(barrier, MessageType::done);
        done(MessageType::barrier);
        server.awaitEnd();
      });
}

TEST(DistFailure, AnArrayThatAServerReadsIsNotGivenBackByItsRefusal) {
  runScripted(
      [](Store& store) {
        // Long enough to be read where it lies.
        constexpr std::size_t kBytes = 400'000;
        const KeyId key = store.define("key", DType::float32, kBytes / sizeof(float), 1);
        const KeyId other = makeKey(store, "other", Floats(1));
        std::vector<Floats> values{Floats(1)};
        void* const shared = store.allocShared(kBytes);
        std::atomic<bool> over{false};
        Waiter waiter;
        const auto told = waiter.ticket();
        told->expect();
        const auto ticket = std::make_shared<Ticket>([&, told](const std::exception_ptr& error) {
          over = true;
          told->finish(error);
        });
        submitOne(store, {.kind = OperationKind::pushPull,
                          .key = key,
                          .in = {shared},
                          .out = {shared},
                          .ticket = ticket});
        // By then the refusal has come, which was sent before.
        run(store, OperationKind::pull, other, values);
        EXPECT_FALSE(over);
        run(store, OperationKind::pull, other, values);
        expectFails(ErrorCode::invalidArgument, "refused", [&] { waiter.wait(); });
        store.freeShared(shared);
      },
      [](ScriptedServer& server) {
        server.answer(server.await(MessageType::push, true), MessageType::failed, "refused");
        server.value(server.await(MessageType::pull), Floats(1));
        const Header last = server.await(MessageType::pull);
        server.releaseHeld();
        server.value(last, Floats(1));
        server.awaitEnd();
      });
}

TEST(DistFailure, TheEndOfTheStoreIsTheErrorOfAllThatWaits) {
  runScripted(
      [](Store& store) {
        const KeyId a = makeKey(store, "a", Floats(100));
        const KeyId b = makeKey(store, "b", Floats(100));
        std::vector<Floats> forA{Floats(100)};
        std::vector<Floats> forB{Floats(100)};
        Waiter waiters[3];
        submitOne(store, operation(OperationKind::pull, a, forA, waiters[0].ticket()));
        submitOne(store, operation(OperationKind::pull, b, forB, waiters[1].ticket()));
        store.barrier(waiters[2].ticket());
        for (Waiter& waiter : waiters) {
          const auto error = errorOf([&] { waiter.wait(); });
          ASSERT_TRUE(error);
          EXPECT_EQ(error->code, ErrorCode::peerLost) << error->what();
          EXPECT_EQ(error->rank, 4);
          EXPECT_FALSE(error->usable);
        }
      },
      [](ScriptedServer& server) {
        server.await(MessageType::pull);
        Header over = server.await(MessageType::pull);
        over.request = 0;
        server.answer(over, MessageType::failed, "worker 4 died", ErrorCode::peerLost, 4);
        server.awaitEnd();
      });
}

TEST(DistFailure, ASilentServerIsNamedAfterTheTimeoutAndOneThatIsThereLater) {
  for (const bool silent : {true, false}) {
    runScripted(
        [silent](Store& store) {
          Waiter waiter;
          store.command("sendCommandToServers", "hello", waiter.ticket());
          const auto error = errorOf([&] { waiter.wait(); });
          ASSERT_TRUE(error);
          EXPECT_EQ(error->code, ErrorCode::timeout);
          EXPECT_EQ(error->rank, silent ? 1 : -1);
          EXPECT_EQ(
              lacking(error->what(), {"sendCommandToServers: ", silent ? "server 0" : "servers"}),
              "");
        },
        [silent](ScriptedServer& server) {
          if (!silent) server.answer(server.await(MessageType::deadNodes), MessageType::done);
          server.awaitEnd();
        },
        50);
  }
}

TEST(DistFailure, AnAnswerThatFitsNothingEndsTheStore) {
  runScripted(
      [](Store& store) {
        const KeyId key = makeKey(store, "key", Floats(100));
        std::vector<Floats> values{Floats(100)};
        expectFails(ErrorCode::mismatch, "key key",
                    [&] { run(store, OperationKind::pull, key, values); });
      },
      [](ScriptedServer& server) {
        server.value(server.await(MessageType::pull), Floats(101));
        server.awaitEnd();
      });
}

/// What each of so many ranks threw that opened a store of two workers and so many servers.
std::vector<std::optional<Error>> meeting(
    int ranks, int servers, const std::function<void(DistStoreOptions&)>& change = {}) {
  return onRanks(ranks, [&](Communicator& comm, int rank) {
    DistStoreOptions options{.workers = 2,
                             .servers = servers,
                             .asynchronous = true,
                             .bigArrayBound = 500,
                             .timeoutMs = 4321};
    if (rank == 1 && change) change(options);
    const DistStoreOptions agreed = agreeOnTerms(comm, rank < 2 ? &options : nullptr);
    EXPECT_EQ(agreed.workers, 2);
    EXPECT_EQ(agreed.servers, servers);
    EXPECT_TRUE(agreed.asynchronous);
    EXPECT_EQ(agreed.bigArrayBound, 500u);
    EXPECT_EQ(agreed.timeoutMs, 4321);
  });
}

TEST(DistTerms, OtherProcessesOrTermsThanTheStoreHasAreAMismatchOnAll) {
  expectNone(meeting(3, 1));
  for (const int servers : {0, 1, 3}) {
    expectAll(meeting(servers == 1 ? 2 : 4, servers), ErrorCode::mismatch);
  }
  const std::function<void(DistStoreOptions&)> changes[] = {
      [](auto& options) { options.asynchronous = false; },
      [](auto& options) { options.bigArrayBound = 501; },
      [](auto& options) { options.servers = 2; }};
  for (const auto& change : changes) expectAll(meeting(3, 1, change), ErrorCode::mismatch, 1);
}

}  // namespace
}  // namespace gradlink::test
