// What ranks are told when something goes wrong, how they wait, and how a job ends.
#include <sys/resource.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "messages/rendezvous.h"
#include "messages/runtime.h"
#include "messages/tags.h"
#include "test/messages/ranks.h"
#include "test/shm/support.h"

namespace gradlink::test {
namespace {

void sum(Communicator& comm, std::size_t count, double timeoutMs = -1) {
  std::vector<float> data(count, 1);
  sumFloats(comm, data.data(), count, {.timeoutMs = timeoutMs});
}

/// For ranks that must stay until the others have seen something.
struct Bystander {
  std::unique_ptr<messages::MpiCommunicator> comm = joinAll("bystander");
  void meet() { comm->barrier(); }
};

const Register kTimeout("timeout", [](const auto&) -> std::string {
  Bystander others;
  auto comm = joinAll();
  const int last = comm->size() - 1;
  comm->barrier();
  std::string wrong;
  if (comm->heldRanks()[0] != last) {
    wrong = expectError(
        ErrorCode::timeout, last, false, [&] { sum(*comm, 10, 1500); },
        "rank " + std::to_string(last));
    // It stays so.
    if (wrong.empty()) {
      wrong = expectError(ErrorCode::timeout, last, false, [&] { sum(*comm, 10, 1500); });
    }
  }
  others.meet();
  // The one that did not come is told, too: at the latest in a call that waits for those that gave
  // up.
  if (comm->heldRanks()[0] == last) {
    wrong = expectError(ErrorCode::timeout, last, false, [&] {
      for (;;) sum(*comm, 10);
    });
  }
  return wrong;
});

const Register kAbort("abort", [](const auto& arguments) -> std::string {
  const std::size_t count = std::stoul(arguments.at(0));
  Bystander others;
  auto comm = joinAll();
  // When all have joined.
  others.meet();
  std::string wrong;
  if (comm->heldRanks()[0] == 1) {
    std::thread([&] { comm->abort("enough"); }).join();
  }
  wrong = expectError(
      ErrorCode::aborted, 1, false,
      [&] {
        for (;;) sum(*comm, count);
      },
      "rank 1: enough");
  others.meet();
  return wrong;
});

const Register kLeft("left", [](const auto& arguments) -> std::string {
  Bystander others;
  auto comm = joinAll();
  const bool dies = arguments.at(0) == "dies";
  const int last = comm->size() - 1;
  sum(*comm, 100000);
  // Who leaves at once ends the sum of those that are not through with it yet.
  others.meet();
  std::string wrong;
  if (comm->heldRanks()[0] == last) {
    if (dies) {
      comm->leave();
      wrong = expectError(ErrorCode::closed, -1, false, [&] { sum(*comm, 10); });
    } else {
      comm->close();
    }
  } else {
    wrong = expectError(
        ErrorCode::peerLost, last, false,
        [&] {
          sum(*comm, 10);
          sum(*comm, 10);
        },
        dies ? "was lost" : "has left");
  }
  others.meet();
  return wrong;
});

const Register kMessages("messages", [](const auto&) -> std::string {
  Bystander others;
  auto comm = joinAll();
  const int me = comm->heldRanks()[0];
  const int last = comm->size() - 1;
  if (me < last) {
    for (int i = 0; i < 200; ++i) {
      std::vector<int> data(i % 5 == 0 ? 30000 : static_cast<std::size_t>(i % 50), i);
      comm->send(data.data(), data.size(), DType::int32, last, me);
    }
  } else {
    // Of one source in its order, whatever the order of the sources.
    for (int i = 0; i < 200; ++i) {
      const std::size_t length = i % 5 == 0 ? 30000 : static_cast<std::size_t>(i % 50);
      for (int source = last - 1; source >= 0; --source) {
        std::vector<int> got(30000, -1);
        const Received received =
            comm->receive(got.data(), got.size(), DType::int32, source, source);
        if (received.source != source || received.count != length ||
            !std::all_of(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(length),
                         [&](int v) { return v == i; })) {
          return "message " + std::to_string(i) + " of rank " + std::to_string(source) +
                 " is wrong";
        }
      }
    }
  }
  comm->barrier();
  // From anybody, and to oneself.
  const int own = me + 100;
  comm->send(&own, 1, DType::int32, me, 9);
  if (me > 0) comm->send(&own, 1, DType::int32, 0, 9);
  int sum = 0;
  for (int i = 0; i < (me == 0 ? comm->size() : 1); ++i) {
    int got = 0;
    const Received from = comm->receive(&got, 1, DType::int32, kAnySource, 9);
    if (got != from.source + 100) return "a message of another source than it says";
    sum += got;
  }
  if (me == 0 && sum != 100 * comm->size() + last * (last + 1) / 2) return "a message is missing";
  // Nothing comes: that changes nothing.
  int nothing = 0;
  std::string wrong = expectError(ErrorCode::timeout, 0, true, [&] {
    comm->receive(&nothing, 1, DType::int32, 0, 77, {.timeoutMs = 50});
  });
  if (!wrong.empty()) return wrong;
  // Not comm's own barrier: a rank that is still in it would hear of the failure there.
  others.meet();
  // What does not fit is an error on both sides.
  std::vector<float> data(50000);
  if (me == 0) {
    wrong = expectError(ErrorCode::mismatch, 0, false,
                        [&] { comm->send(data.data(), data.size(), DType::float32, 1, 3); });
  } else if (me == 1) {
    wrong = expectError(ErrorCode::mismatch, 0, false,
                        [&] { comm->receive(data.data(), data.size() - 1, DType::float32, 0, 3); });
  }
  others.meet();
  return wrong;
});

const Register kReceiveFromLeft("receive-from-left", [](const auto&) -> std::string {
  Bystander others;
  auto comm = joinAll();
  std::string wrong;
  if (comm->heldRanks()[0] == 0) {
    const int last = 42;
    comm->send(&last, 1, DType::int32, 1, 1);
    comm->close();
  } else if (comm->heldRanks()[0] == 1) {
    others.meet();
    int got = 0;
    comm->receive(&got, 1, DType::int32, 0, 1);
    if (got != 42) return "the last message is wrong";
    wrong = expectError(ErrorCode::peerLost, 0, false,
                        [&] { comm->receive(&got, 1, DType::int32, 0, 1); });
    if (wrong.empty()) {
      wrong = expectError(ErrorCode::peerLost, 0, false,
                          [&] { comm->send(&got, 1, DType::int32, 0, 1); });
    }
    return wrong;
  }
  others.meet();
  return wrong;
});

/// Tells rank 0 of an attempt to meet with all ranks, as one that was given up leaves behind.
void leaveNote(const std::string& name, messages::MeetingNote::Step step, int size) {
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  const messages::MeetingNote note{
      .step = step, .attempt = 1000, .members = messages::digestOfMembers(all)};
  std::string bytes(reinterpret_cast<const char*>(&note), sizeof(note));
  bytes += name + '\0';
  const messages::Shim& mpi = messages::shim();
  messages::RequestHandle request;
  mpi.isend(bytes.data(), bytes.size(), 0, messages::kMeetTag, mpi.world(), &request);
  for (bool done = false; !done;) mpi.test(&request, &done, nullptr);
}

const Register kJoin("join", [](const auto&) -> std::string {
  using Step = messages::MeetingNote::Step;
  const messages::Place place = messages::start(60000);
  Bystander others;
  std::string wrong;
  // A part of the job meets without the rest; names in another order on each rank, on two threads.
  if (place.rank < place.size - 1) {
    std::vector<int> ranks;
    for (int r = 0; r < place.size - 1; ++r) ranks.push_back(r);
    const auto joinPart = [&](const std::string& name) {
      auto part = messages::join({.name = name, .ranks = ranks, .timeoutMs = 60000});
      if (part->size() != place.size - 1) wrong = "another size than asked for";
      sum(*part, 1000);
    };
    std::thread first([&] { joinPart(place.rank % 2 == 0 ? "a" : "b"); });
    joinPart(place.rank % 2 == 0 ? "b" : "a");
    first.join();
  }
  others.meet();
  // Nobody counts twice, and nobody by what an earlier attempt has left behind.
  if (place.rank == 1) {
    for (const Step step : {Step::here, Step::present}) leaveNote("late", step, place.size);
  }
  if (place.rank == place.size - 1) leaveNote("late", Step::present, place.size);
  // A rank that does not come is named, on all that came: the time must do for these.
  if (place.rank != place.size - 1) {
    wrong += expectError(
        ErrorCode::timeout, place.size - 1, true,
        [] { messages::join({.name = "late", .ranks = {}, .timeoutMs = 1500}); },
        "missing: " + std::to_string(place.size - 1));
  }
  others.meet();
  // And may come with the rest later.
  auto late = messages::join({.name = "late", .ranks = {}, .timeoutMs = 60000});
  sum(*late, 10);
  // The one whom all wait for.
  if (place.rank != 0) {
    wrong += expectError(ErrorCode::timeout, 0, true, [] {
      messages::join({.name = "without 0", .ranks = {}, .timeoutMs = 300});
    });
  }
  others.meet();
  std::atomic<bool> cancelled{true};
  wrong += expectError(ErrorCode::closed, -1, true, [&] {
    messages::join({.name = "alone " + std::to_string(place.rank),
                    .ranks = {},
                    .timeoutMs = 60000,
                    .cancelled = &cancelled});
  });
  others.meet();
  return wrong;
});

const Register kLibrary("library", [](const auto& arguments) -> std::string {
  const messages::LibraryInfo& info = messages::libraryInfo();
  const messages::Place place = messages::start(60000);
  auto comm = joinAll();
  if (place.size != comm->size() || place.size < 2) return "a job of another size";
  return info.flavour == arguments.at(0) ? "" : "it is " + info.flavour + " by " + info.chosenBy;
});

const Register kNodes("nodes", [](const auto& arguments) -> std::string {
  auto comm = joinAll();
  std::vector<int> want;
  for (const std::string& node : arguments) want.push_back(std::stoi(node));
  if (comm->nodes() == want) return {};
  std::string text = "the nodes are";
  for (int node : comm->nodes()) text += " " + std::to_string(node);
  return text;
});

double processorSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Whoever waits long leaves the core to others.
const Register kIdle("idle", [](const auto&) -> std::string {
  Bystander others;
  auto comm = joinAll();
  auto wire = comm->openWire();
  comm->barrier();
  constexpr double kWaitMs = 1500;
  std::string wrong;
  const auto share = [&](const char* what, const std::function<void()>& wait) {
    const double before = processorSeconds();
    wait();
    const double used = (processorSeconds() - before) / (kWaitMs * 1e-3);
    if (used > 0.25) {
      wrong += std::string(what) + " takes " + std::to_string(used) + " of a core; ";
    }
  };
  if (comm->heldRanks()[0] == 0) {
    int nothing = 0;
    share("receive", [&] {
      const auto code =
          codeOf([&] { comm->receive(&nothing, 1, DType::int32, 1, 0, {.timeoutMs = kWaitMs}); });
      if (code != ErrorCode::timeout) wrong += "receive is no timeout; ";
    });
    WireEvents events;
    share("poll", [&] { wire->poll(events, Deadline::in(kWaitMs)); });
  }
  others.meet();
  return wrong;
});

const Register kAbortJob("abort-job", [](const auto&) -> std::string {
  auto comm = joinAll();
  comm->barrier();
  if (comm->heldRanks()[0] == 1) messages::abortJob("good bye", 3);
  // Ended from outside.
  for (;;) sum(*comm, 10);
});

// Without closing, from a thread that is in a call.
const Register kExit("exit", [](const auto&) -> std::string {
  // Never destroyed, as what JavaScript did not close.
  auto* const comm = joinAll().release();
  sum(*comm, 100000);
  comm->openWire().release();
  std::thread([comm] {
    int nothing = 0;
    errorOf([&] { comm->receive(&nothing, 1, DType::int32, kAnySource, 0); });
  }).detach();
  std::exit(0);
});

}  // namespace
}  // namespace gradlink::test
