#include "core/one_host.h"
#include "core/window.h"

#include <utility>

#include "core/wire.h"

namespace gradlink {
namespace {

class OneHost final : public Communicator {
 public:
  OneHost(std::unique_ptr<Communicator> engine, std::unique_ptr<Communicator> world,
          const char* backend)
      : engine_(std::move(engine)), world_(std::move(world)), backend_(backend) {}
  ~OneHost() override { close(); }

  int size() const override { return engine_->size(); }
  std::span<const int> heldRanks() const override { return engine_->heldRanks(); }
  const char* backend() const override { return backend_; }

  void allReduce(const Buffers& b, std::size_t count, DType dtype, ReduceOp op,
                 const CallOptions& o) override {
    engine_->allReduce(b, count, dtype, op, o);
  }
  void reduce(const Buffers& b, std::size_t count, DType dtype, ReduceOp op, int root,
              const CallOptions& o) override {
    engine_->reduce(b, count, dtype, op, root, o);
  }
  void broadcast(const Buffers& b, std::size_t count, DType dtype, int root,
                 const CallOptions& o) override {
    engine_->broadcast(b, count, dtype, root, o);
  }
  void allGather(const Buffers& b, std::size_t count, DType dtype, const CallOptions& o) override {
    engine_->allGather(b, count, dtype, o);
  }
  void reduceScatter(const Buffers& b, std::size_t count, DType dtype, ReduceOp op,
                     const CallOptions& o) override {
    engine_->reduceScatter(b, count, dtype, op, o);
  }
  void allToAll(const Buffers& b, std::size_t count, DType dtype, const CallOptions& o) override {
    engine_->allToAll(b, count, dtype, o);
  }
  void gather(const Buffers& b, std::size_t count, DType dtype, int root,
              const CallOptions& o) override {
    engine_->gather(b, count, dtype, root, o);
  }
  void scatter(const Buffers& b, std::size_t count, DType dtype, int root,
               const CallOptions& o) override {
    engine_->scatter(b, count, dtype, root, o);
  }
  void barrier(const CallOptions& o) override { engine_->barrier(o); }
  void neighborAllReduce(const Buffers& b, std::size_t count, DType dtype,
                         std::span<const Neighborhood> neighborhoods,
                         const CallOptions& o) override {
    engine_->neighborAllReduce(b, count, dtype, neighborhoods, o);
  }
  std::unique_ptr<Window> openWindow(const WindowSpec& spec, const CallOptions& o) override {
    return engine_->openWindow(spec, o);
  }
  void send(const void* data, std::size_t count, DType dtype, int destination, int tag,
            const CallOptions& o) override {
    engine_->send(data, count, dtype, destination, tag, o);
  }
  Received receive(void* data, std::size_t count, DType dtype, int source, int tag,
                   const CallOptions& o) override {
    return engine_->receive(data, count, dtype, source, tag, o);
  }

  void* allocShared(std::size_t bytes) override { return engine_->allocShared(bytes); }
  void freeShared(void* memory) override { engine_->freeShared(memory); }
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions& o) override {
    auto part = engine_->split(color, key, o);
    if (part == nullptr) return nullptr;
    return std::make_unique<OneHost>(std::move(part), nullptr, backend_);
  }
  std::unique_ptr<Wire> openWire(const CallOptions& o) override { return engine_->openWire(o); }
  void abort(const std::string& reason) override { engine_->abort(reason); }
  void fail(const Error& error) override { engine_->fail(error); }
  void check(const char* op) override { engine_->check(op); }
  void leave() override { engine_->leave(); }
  void close() override {
    engine_->close();
    if (world_) world_->close();
  }

 private:
  std::unique_ptr<Communicator> engine_;
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
