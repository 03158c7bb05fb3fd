// Forwards every call to another communicator of the same ranks; subclasses override some.
#pragma once

#include <memory>
#include <utility>

#include "core/communicator.h"

namespace gradlink {

class ForwardingCommunicator : public Communicator {
 public:
  int size() const override { return inner_->size(); }
  std::span<const int> heldRanks() const override { return inner_->heldRanks(); }
  double timeoutMs() const override { return inner_->timeoutMs(); }
  const char* backend() const override { return inner_->backend(); }

  void run(const Call& call) override { inner_->run(call); }

  void* allocShared(std::size_t bytes) override { return inner_->allocShared(bytes); }
  void freeShared(void* memory) override { inner_->freeShared(memory); }
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions& = {}) override;
  std::unique_ptr<Wire> openWire(const CallOptions& = {}) override;
  std::unique_ptr<Window> openWindow(const WindowSpec&, const CallOptions& = {}) override;
  void abort(const std::string& reason) override { inner_->abort(reason); }
  void fail(const Error& error) override { inner_->fail(error); }
  void follow(Communicator& above) override { inner_->follow(above); }
  void check(const char* op) override { inner_->check(op); }
  void leave() override { inner_->leave(); }
  void close() override { inner_->close(); }

 protected:
  explicit ForwardingCommunicator(std::shared_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  Communicator& inner() const { return *inner_; }

 private:
  const std::shared_ptr<Communicator> inner_;
};

}  // namespace gradlink
