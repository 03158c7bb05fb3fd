#include "messages/rendezvous.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "messages/pause.h"
#include "messages/runtime.h"
#include "messages/tags.h"

namespace gradlink::messages {
namespace {

using Note = MeetingNote;
using Step = MeetingNote::Step;

struct Arrived {
  Note note;
  int from;
  std::string text;
};

/// Received notes by name. Notes for names that nobody waits for stay.
class NoteInbox {
 public:
  static NoteInbox& get() {
    static NoteInbox* const inbox = new NoteInbox;
    return *inbox;
  }

  /// A number for this attempt; throws if this process is already meeting under that name.
  std::uint64_t open(const std::string& name) {
    std::lock_guard lock(mutex_);
    if (!open_.insert({name, true}).second) {
      throw harmless(ErrorCode::mismatch, "join",
                     "this process is joining '" + name + "' on another thread already");
    }
    return ++attempts_;
  }
  void close(const std::string& name) {
    std::lock_guard lock(mutex_);
    open_.erase(name);
  }

  std::vector<Arrived> take(const std::string& name) {
    std::lock_guard lock(mutex_);
    const Shim& mpi = shim();
    std::erase_if(sends_, [&](auto& send) {
      bool done = false;
      return mpi.test(&send.first, &done, nullptr) != 0 || done;
    });
    bool found = false;
    MessageStatus status;
    for (;;) {
      checkMpi("join", mpi.probe(kAnySourceOfShim, kMeetTag, mpi.world(), &found, &status));
      if (!found) break;
      std::vector<char> bytes(std::max(status.bytes, sizeof(Note)) + 1);
      checkMpi("join", mpi.receive(bytes.data(), status.bytes, status.source, kMeetTag, mpi.world(),
                                   &status));
      Arrived arrived{{}, status.source, {}};
      std::memcpy(&arrived.note, bytes.data(), sizeof(Note));
      const std::string to = bytes.data() + sizeof(Note);
      if (arrived.note.step == Step::failed) {
        arrived.text = bytes.data() + sizeof(Note) + to.size() + 1;
      }
      notes_[to].push_back(std::move(arrived));
    }
    const auto at = notes_.find(name);
    if (at == notes_.end()) return {};
    std::vector<Arrived> taken = std::move(at->second);
    notes_.erase(at);
    return taken;
  }

  void send(int to, const Note& note, const std::string& name, const std::string& text = {}) {
    const std::size_t bytes = sizeof(note) + name.size() + 1 + text.size() + 1;
    auto copy = std::make_unique<char[]>(bytes);
    std::memcpy(copy.get(), &note, sizeof(note));
    std::memcpy(copy.get() + sizeof(note), name.c_str(), name.size() + 1);
    std::memcpy(copy.get() + sizeof(note) + name.size() + 1, text.c_str(), text.size() + 1);
    std::lock_guard lock(mutex_);
    RequestHandle request;
    const Shim& mpi = shim();
    checkMpi("join", mpi.isend(copy.get(), bytes, to, kMeetTag, mpi.world(), &request));
    sends_.emplace_back(request, std::move(copy));
  }

 private:
  std::mutex mutex_;
  std::uint64_t attempts_ = 0;
  std::map<std::string, bool> open_;
  std::map<std::string, std::vector<Arrived>> notes_;
  std::vector<std::pair<RequestHandle, std::unique_ptr<char[]>>> sends_;
};

class Rendezvous {
 public:
  Rendezvous(const std::string& name, const std::vector<int>& ranks, Deadline deadline,
             const std::atomic<bool>* cancelled)
      : name_(name),
        ranks_(ranks),
        deadline_(deadline),
        cancelled_(cancelled),
        me_(Runtime::get().place().rank),
        digest_(digestOfMembers(ranks)),
        attempt_(NoteInbox::get().open(name)) {}
  ~Rendezvous() { NoteInbox::get().close(name_); }

  void run() {
    if (ranks_.size() > 1) {
      if (me_ == ranks_[0]) {
        lead();
      } else {
        follow();
      }
    }
  }

 private:
  Note note(Step step, std::uint64_t attempt) const {
    return {.step = step, .attempt = attempt, .members = digest_};
  }
  Error failure(ErrorCode code, const std::string& text, int rank = -1) const {
    return Error(code, "join '" + name_ + "': " + text).withRank(rank).withOp("join").stillUsable();
  }
  /// `decided`: only the leader can end the rendezvous, by its deadline.
  void pause(bool decided = false) {
    if (!pause_.after()) return;
    if (!decided && cancelled_ != nullptr && cancelled_->load()) {
      throw failure(ErrorCode::closed, "given up");
    }
    if (!Runtime::get().running()) throw failure(ErrorCode::closed, "the process is ending");
    gone_ = firstGone();
  }

  /// A dead process that this one waits for, or -1. All wait for the leader, which waits for all.
  int firstGone() const {
    const Shim& mpi = shim();
    if (mpi.goneAbove == nullptr) return -1;
    const auto last = me_ == ranks_[0] ? ranks_.end() : ranks_.begin() + 1;
    int rank = mpi.goneAbove(mpi.world(), -1);
    while (rank >= 0 && !std::binary_search(ranks_.begin(), last, rank)) {
      rank = mpi.goneAbove(mpi.world(), rank);
    }
    return rank;
  }
  /// Checked after reading messages: the last ones come before the end of their sender.
  void throwGone() const {
    if (gone_ < 0) return;
    throw failure(
        ErrorCode::peerLost,
        "rank " + std::to_string(gone_) + " was lost: " + shim().whyGone(shim().world(), gone_),
        gone_);
  }

  void lead() {
    /// For each member that has come: its attempt, and whether it waits for the decision.
    std::map<int, std::pair<std::uint64_t, bool>> come;
    try {
      for (std::size_t present = 1; present < ranks_.size();) {
        for (const Arrived& arrived : NoteInbox::get().take(name_)) {
          if (arrived.note.step != Step::here && arrived.note.step != Step::present) continue;
          if (!std::binary_search(ranks_.begin(), ranks_.end(), arrived.from) ||
              arrived.note.members != digest_) {
            come[arrived.from] = {arrived.note.attempt, true};
            throw failure(ErrorCode::mismatch,
                          "rank " + std::to_string(arrived.from) + " and rank " +
                              std::to_string(me_) + " name different members",
                          arrived.from);
          }
          auto& [attempt, waits] = come[arrived.from];
          if (arrived.note.step == Step::here) {
            if (waits) --present;
            attempt = arrived.note.attempt;
            waits = false;
            NoteInbox::get().send(arrived.from, note(Step::call, attempt), name_);
          } else if (arrived.note.attempt == attempt && !waits) {
            waits = true;
            ++present;
          }
        }
        if (present == ranks_.size()) break;
        throwGone();
        pause();
        if (deadline_.passed()) throw late(come);
      }
    } catch (const Error& error) {
      for (const auto& [rank, state] : come) {
        Note decision = note(Step::failed, state.first);
        decision.code = static_cast<std::int32_t>(error.code);
        decision.rank = error.rank;
        NoteInbox::get().send(rank, decision, name_, error.what());
      }
      throw;
    }
    for (const auto& [rank, state] : come) {
      NoteInbox::get().send(rank, note(Step::go, state.first), name_);
    }
  }

  Error late(const std::map<int, std::pair<std::uint64_t, bool>>& come) const {
    std::string missing;
    int first = -1;
    for (int rank : ranks_) {
      const auto at = come.find(rank);
      if (rank == me_ || (at != come.end() && at->second.second)) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      if (first < 0) first = rank;
    }
    return failure(ErrorCode::timeout,
                   "not all ranks came within the deadline; missing: " + missing +
                       ". timeoutMs sets the deadline",
                   first);
  }

  void follow() {
    const int leader = ranks_[0];
    NoteInbox::get().send(leader, note(Step::here, attempt_), name_);
    for (bool present = false;;) {
      for (const Arrived& arrived : NoteInbox::get().take(name_)) {
        if (arrived.note.attempt != attempt_) continue;
        if (arrived.note.step == Step::call) {
          present = true;
          NoteInbox::get().send(leader, note(Step::present, attempt_), name_);
        } else if (arrived.note.step == Step::go) {
          return;
        } else if (arrived.note.step == Step::failed) {
          throw Error(static_cast<ErrorCode>(arrived.note.code), arrived.text)
              .withRank(arrived.note.rank)
              .withOp("join")
              .stillUsable();
        }
      }
      throwGone();
      pause(present);
      if (!present && deadline_.passed()) {
        throw failure(ErrorCode::timeout,
                      "rank " + std::to_string(leader) +
                          " did not join within the deadline. timeoutMs sets the deadline",
                      leader);
      }
    }
  }

  const std::string& name_;
  const std::vector<int>& ranks_;
  const Deadline deadline_;
  const std::atomic<bool>* const cancelled_;
  const int me_;
  const std::uint64_t digest_;
  const std::uint64_t attempt_;
  Pause pause_;
  int gone_ = -1;
};

}  // namespace

std::uint64_t digestOfMembers(const std::vector<int>& ranks) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (int rank : ranks) digest = (digest ^ static_cast<std::uint64_t>(rank)) * 0x100000001b3;
  return digest;
}

CommHandle meet(const std::string& name, const std::vector<int>& ranks, Deadline deadline,
                const std::atomic<bool>* cancelled) {
  Rendezvous(name, ranks, deadline, cancelled).run();
  CommHandle made;
  const Shim& mpi = shim();
  // MPI guarantees tags up to 32767.
  const int tag = static_cast<int>(std::hash<std::string>()(name) % 32768);
  checkMpi("join",
           mpi.createGroup(mpi.world(), ranks.data(), static_cast<int>(ranks.size()), tag, &made));
  return made;
}

}  // namespace gradlink::messages
