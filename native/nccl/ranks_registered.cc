// Registered memory.
#include <optional>
#include <utility>

#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

class HeldPiece final : public RegisteredMemory {
 public:
  HeldPiece(std::shared_ptr<Core> core, std::list<RegisteredPiece> piece)
      : core_(std::move(core)), piece_(std::move(piece)) {}
  ~HeldPiece() override {
    core_->registered.retire(piece_);
    core_->sweepUnlessBusy();
  }

  void* data() const override { return piece_.front().memory.data(); }
  std::optional<RegistrationKind> kind() const override {
    const RegisteredPiece& piece = piece_.front();
    if (!piece.isKnown()) return std::nullopt;
    return piece.window != nullptr ? RegistrationKind::symmetric : RegistrationKind::local;
  }

 private:
  std::shared_ptr<Core> core_;
  /// A list of one, so that handing it over cannot fail.
  std::list<RegisteredPiece> piece_;
};

bool allHave(const std::vector<std::list<RegisteredPiece>>& pieces,
             bool (*has)(const RegisteredPiece&)) {
  for (const auto& piece : pieces) {
    if (!has(piece.front())) return false;
  }
  return true;
}

}  // namespace

// Either this thread gets the mutex, or its owner sees the retired memory when it releases it.
void Core::sweepUnlessBusy() noexcept {
  while (registered.hasRetired()) {
    // Freeing may wait for the device, so not under the mutex.
    std::list<RegisteredPiece> gone;
    const std::unique_lock lock(calls, std::try_to_lock);
    if (!lock.owns_lock()) return;
    gone = registered.sweep(Library::get(), comms);
  }
}

void Ranks::registerPieces(std::vector<std::list<RegisteredPiece>>& pieces, const Watch& watch) {
  meet(watch);
  const auto handleOf = [&](std::size_t i) { return core_->comms.members()[i]->handle; };
  const auto bytes = pieces.front().front().memory.bytes();
  if (library_.commWindowRegister != nullptr) {
    core_->comms.group(watch, [&](std::size_t i) {
      RegisteredPiece& piece = pieces[i].front();
      return library_.commWindowRegister(handleOf(i), piece.memory.data(), bytes, &piece.window,
                                         abi::kWindowSymmetric);
    });
    if (allHave(pieces, [](const RegisteredPiece& one) { return one.window != nullptr; })) return;
    // Either all ranks of a process have windows, or none.
    for (auto& piece : pieces) piece.front().window = nullptr;
  }
  core_->comms.group(watch, [&](std::size_t i) {
    RegisteredPiece& piece = pieces[i].front();
    return library_.commRegister(handleOf(i), piece.memory.data(), bytes, &piece.local);
  });
}

std::vector<std::unique_ptr<RegisteredMemory>> Ranks::allocRegistered(std::size_t bytes,
                                                                      const CallOptions& options) {
  std::vector<std::unique_ptr<RegisteredMemory>> made;
  guarded("allocRegistered", options, [&](const Watch& watch) {
    const bool registers = bytes > 0 && !library_.info.registersNothing &&
                           library_.memAlloc != nullptr && library_.commRegister != nullptr;
    std::vector<std::list<RegisteredPiece>> pieces;
    std::optional<Error> failed;
    try {
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        pieces.emplace_back();
        pieces.back().push_back({.member = i, .memory = Memory(*devices_[i], bytes)});
      }
    } catch (const Error& error) {
      failed = error;
    }
    agreeOnMemory(bytes, registers, failed, watch);
    if (registers) {
      try {
        registerPieces(pieces, watch);
      } catch (const Error& error) {
        // A thread of the library may still write its results.
        core_->abandoned.push_back(
            std::make_shared<std::vector<std::list<RegisteredPiece>>>(std::move(pieces)));
        Error better(error.code, std::string(error.what()) +
                                     "; GRADLINK_NCCL_REGISTER=no takes memory that is not "
                                     "registered");
        throw better.withRank(error.rank).withOp(watch.op);
      }
    }
    const std::uint64_t number = core_->registered.nextNumber();
    for (auto& piece : pieces) {
      core_->registered.add(piece.front(), number);
      made.push_back(std::make_unique<HeldPiece>(core_, std::move(piece)));
    }
  });
  return made;
}

}  // namespace gradlink::nccl
