#include "core/hosts/one_host.h"

#include <utility>

#include "core/forwarding_communicator.h"

namespace gradlink {
namespace {

class OneHost final : public ForwardingCommunicator {
 public:
  OneHost(std::unique_ptr<Communicator> engine, std::unique_ptr<Communicator> world,
          const char* backend)
      : ForwardingCommunicator(std::move(engine)), world_(std::move(world)), backend_(backend) {}
  ~OneHost() override { OneHost::close(); }

  const char* backend() const override { return backend_; }

  std::unique_ptr<Communicator> split(int color, int key, const CallOptions& o) override {
    auto part = inner().split(color, key, o);
    if (part == nullptr) return nullptr;
    return std::make_unique<OneHost>(std::move(part), nullptr, backend_);
  }
  void close() override {
    inner().close();
    if (world_) world_->close();
  }

 private:
  std::unique_ptr<Communicator> world_;
  const char* backend_;
};

}  // namespace

std::unique_ptr<Communicator> makeOneHost(std::unique_ptr<Communicator> engine,
                                          std::unique_ptr<Communicator> world) {
  const char* const backend = world->backend();
  return std::make_unique<OneHost>(std::move(engine), std::move(world), backend);
}

}  // namespace gradlink
