// What a server does when workers die, leave, come late or disagree.
#include "test/kvstore/server/support.h"

namespace gradlink::test {
namespace {

/// Waits for the end of the store and returns how it was told.
Answer awaitEnd(HandWorker& worker) { return worker.await(0); }

void expectEnd(HandWorker& worker, ErrorCode code, int blame) {
  const Answer end = awaitEnd(worker);
  EXPECT_EQ(end.header.type, MessageType::failed);
  EXPECT_EQ(static_cast<ErrorCode>(end.header.code), code) << end.text();
  EXPECT_EQ(end.header.blame, blame) << end.text();
}

void expectServerThrew(const ServedRun& run, ErrorCode code, int rank) {
  expectAll({run.errors.back()}, code, rank);
}

void defineOne(HandWorker& worker, float value = 0) {
  worker.define(1);
  if (worker.rank() == 0) worker.init({value});
}

TEST(ServerFailure, AnAsynchronousStoreCarriesOnWhereThatIsWantedAndAnyWithoutWhoLeft) {
  for (const bool leaves : {false, true}) {
    ServerOptions options = serverOf(2);
    options.asynchronous = options.tolerateWorkerLoss = !leaves;
    expectServed(options, [leaves](HandWorker& worker) {
      defineOne(worker);
      worker.await(worker.request(MessageType::barrier));
      if (worker.rank() == 1) {
        leaves ? worker.await(worker.request(MessageType::leave)), void() : worker.push({4}, 1);
        worker.takeWire().reset();
        return;
      }
      double lost = 0;
      while (lost == 0) {
        lost = worker.await(worker.request(MessageType::deadNodes)).as<double>()[0];
      }
      EXPECT_EQ(lost, 1);
      EXPECT_EQ(worker.pulled(1, 0)[0], leaves ? 0 : 4);
      worker.push({5}, 1);
      EXPECT_EQ(worker.pulled(1, 1)[0], 5);
      worker.await(worker.request(MessageType::barrier));
    });
  }
}

TEST(ServerFailure, AWorkerThatEndsWithFewerRoundsIsNamed) {
  const auto run = served(serverOf(2), [](HandWorker& worker) {
    defineOne(worker);
    worker.push({1}, 1);
    EXPECT_EQ(worker.pulled(1, 1)[0], 2);
    if (worker.rank() == 1) return;
    worker.push({1}, 2);
    expectEnd(worker, ErrorCode::peerLost, 1);
  });
  expectServerThrew(run, ErrorCode::peerLost, 1);
}

/// What one of three workers does alone, and who is told to be missing. Nothing else: the time
/// begins with the first, and a second could come too late.
struct Alone {
  int worker;
  void (*does)(HandWorker&);
  int missing;
  const char* text;
};

TEST(ServerFailure, WhoWaitsTooLongIsToldWhoIsMissing) {
  ServerOptions options = serverOf(3);
  options.timeoutMs = 200;
  const Alone cases[] = {
      {0, [](HandWorker& worker) { worker.push({1}, 1); }, 1, "worker 1, 2,"},
      {0, [](HandWorker& worker) { worker.request(MessageType::barrier); }, 1, "barrier: worker 1"},
      {1, [](HandWorker& worker) { worker.request(MessageType::setOptimizer); }, 0, "worker 0"}};
  for (const Alone& alone : cases) {
    const auto run = served(options, [&](HandWorker& worker) {
      defineOne(worker);
      if (worker.rank() == alone.worker) alone.does(worker);
      const Answer end = awaitEnd(worker);
      EXPECT_EQ(static_cast<ErrorCode>(end.header.code), ErrorCode::timeout) << end.text();
      EXPECT_EQ(end.header.blame, alone.missing) << end.text();
      EXPECT_NE(end.text().find(alone.text), std::string::npos) << end.text();
    });
    expectServerThrew(run, ErrorCode::timeout, alone.missing);
  }
}

TEST(ServerFailure, AValueThatNobodyReadsIsBlamedOnWhoWasSilentForLongest) {
  ServerOptions options = serverOf(2);
  options.asynchronous = true;
  options.timeoutMs = 200;
  std::atomic<bool> reads{false};
  const auto run = served(options, [&](HandWorker& worker) {
    defineOne(worker);
    WireEvents held;
    if (worker.rank() == 1) {
      worker.pull(0);
      ASSERT_TRUE(pollUntil(worker.wire(), held, [&] { return !held.messages.empty(); }));
      reads = true;
    } else {
      waitUntil([&] { return reads.load(); });
      worker.push({1}, 1);
    }
    expectEnd(worker, ErrorCode::timeout, 1);
    for (const WireMessage& message : held.messages) worker.wire().release(message.token);
  });
  expectServerThrew(run, ErrorCode::timeout, 1);
}

/// To a shard of a piece and ten elements.
TEST(ServerFailure, WhatNoWorkerSendsEndsTheStore) {
  void (*const messages[])(HandWorker&) = {
      [](HandWorker& worker) {
        Header header{MessageType::push};
        header.piece = 1;
        header.count = 11;
        header.round = 1;
        const std::vector<float> eleven(11);
        worker.send(header, eleven.data(), eleven.size() * sizeof(float));
      },
      [](HandWorker& worker) {
        for (int i = 0; i < 2; ++i) worker.push(std::vector<float>(kServerPiece + 10), 1);
      },
      // From one piece into the next.
      [](HandWorker& worker) {
        const std::uint64_t run[] = {kServerPiece - 1, 2};
        worker.request(MessageType::pullRows, run, sizeof run);
      },
      [](HandWorker& worker) {
        for (const float threshold : {0.5F, 0.25F}) {
          const dist::CompressionTerms terms{1, threshold};
          worker.request(MessageType::setCompression, &terms, sizeof terms);
        }
      }};
  for (const auto message : messages) {
    const auto run = served(serverOf(1), [&](HandWorker& worker) {
      worker.define(kServerPiece + 10);
      worker.init(std::vector<float>(kServerPiece + 10));
      message(worker);
      awaitEnd(worker);
    });
    expectAll({run.errors.back()}, ErrorCode::mismatch);
  }
}

TEST(ServerFailure, PushesThatWaitForOthersAreReleasedInTheEnd) {
  std::atomic<bool> released{false};
  expectServed(serverOf(2), [&](HandWorker& worker) {
    defineOne(worker);
    if (worker.rank() == 0) {
      void* memory = worker.wire().allocate(4);
      *static_cast<float*>(memory) = 3;
      Header header{MessageType::push};
      header.count = 1;
      header.round = 1;
      worker.wire().send(2, std::as_bytes(std::span(&header, 1)), memory, 4, 1);
      WireEvents events;
      EXPECT_TRUE(pollUntil(worker.wire(), events, [&] {
        return std::find(events.sent.begin(), events.sent.end(), 1) != events.sent.end();
      }));
      *static_cast<float*>(memory) = -1;  // is not seen any more
      released = true;
    } else {
      waitUntil([&] { return released.load(); });
      worker.push({1}, 1);
      EXPECT_EQ(worker.pulled(1, 1)[0], 4);
    }
  });
}

TEST(ServerFailure, AServerThatIsStoppedTellsItsWorkers) {
  std::atomic<bool> stop{false};
  const auto run = served(
      serverOf(1),
      [&](HandWorker& worker) {
        worker.await(worker.request(MessageType::barrier));
        stop = true;
        expectEnd(worker, ErrorCode::closed, -1);
      },
      &stop);
  expectServerThrew(run, ErrorCode::closed, -1);
}

TEST(ServerFailure, AServerThatDiesEndsTheStoreOfTheOthers) {
  const std::string name = freshName();
  const auto errors = onThreads(3, [&](int rank) {
    auto wire = shm::joinWire(optionsFor(name, rank, 3));
    if (rank == 2) return;  // the second server: lost
    if (rank == 1) {
      ServerOptions options = serverOf(1);
      options.servers = 2;
      serve(std::move(wire), options);
      return;
    }
    HandWorker worker(std::move(wire), 1);
    expectEnd(worker, ErrorCode::peerLost, 2);
    worker.close();
  });
  expectAll({errors[1]}, ErrorCode::peerLost, 2);
  EXPECT_EQ(lacking(errors[1]->what(), {"server 1 (rank 2)"}), "");
}

}  // namespace
}  // namespace gradlink::test
