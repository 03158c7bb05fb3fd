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

TEST(ServerFailure, AnAsynchronousStoreCarriesOnWhereThatIsWanted) {
  ServerOptions options = serverOf(2);
  options.asynchronous = true;
  options.tolerateWorkerLoss = true;
  expectServed(options, [](HandWorker& worker) {
    defineOne(worker);
    worker.await(worker.request(MessageType::barrier));
    if (worker.rank() == 1) {
      worker.push({4}, 1);
      worker.takeWire().reset();
      return;
    }
    double lost = 0;
    while (lost == 0) {
      lost = worker.await(worker.request(MessageType::deadNodes)).as<double>()[0];
    }
    EXPECT_EQ(lost, 1);
    EXPECT_EQ(worker.pulled(1, 0)[0], 4);
    worker.push({5}, 1);
    EXPECT_EQ(worker.pulled(1, 1)[0], 5);
    worker.await(worker.request(MessageType::barrier));
  });
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

TEST(ServerFailure, ARoundThatWaitsTooLongIsAnErrorThatNamesWhoIsMissing) {
  ServerOptions options = serverOf(3);
  options.timeoutMs = 200;
  const auto run = served(options, [](HandWorker& worker) {
    defineOne(worker);
    // One alone: the time begins with the first push, and a second could come too late.
    if (worker.rank() == 0) worker.push({1}, 1);
    const Answer end = awaitEnd(worker);
    EXPECT_EQ(static_cast<ErrorCode>(end.header.code), ErrorCode::timeout) << end.text();
    EXPECT_EQ(end.header.blame, 1) << end.text();
    EXPECT_NE(end.text().find("worker 1, 2,"), std::string::npos) << end.text();
  });
  expectServerThrew(run, ErrorCode::timeout, 1);
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
      const Deadline deadline = Deadline::in(20000);
      auto told = [&] {
        return std::find(events.sent.begin(), events.sent.end(), 1) != events.sent.end();
      };
      while (!told() && !deadline.passed()) worker.wire().poll(events, deadline);
      EXPECT_TRUE(told());
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
