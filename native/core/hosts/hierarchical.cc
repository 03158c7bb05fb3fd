#include "core/hosts/hierarchical.h"

#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "core/agreement.h"
#include "core/error.h"
#include "core/hosts/hierarchical_templates.h"
#include "core/hosts/hierarchical_wire.h"
#include "core/hosts/one_host.h"

namespace gradlink {
namespace {

/// Partial sums of integers may wrap where their average does not; the widest has no wider type.
bool averagesIntegers(const Shape& shape) {
  const bool reduces = shape.kind == Kind::allReduce || shape.kind == Kind::reduce ||
                       shape.kind == Kind::reduceScatter;
  return reduces && shape.op == ReduceOp::avg && !isFloat(shape.dtype);
}

}  // namespace

bool Hierarchical::isSmall(const Shape& shape) {
  const std::size_t bytes = shape.count * sizeOf(partialOf(shape.dtype, shape.op));
  return shape.kind == Kind::allReduce && !averagesIntegers(shape) && bytes <= kSmallBytes;
}

std::unique_ptr<Communicator> overHosts(Levels levels) {
  const NodeMap map(levels.nodeOf, levels.world->heldRanks()[0]);
  if (map.nodes() == 1) {
    return makeOneHost(std::move(levels.node), std::move(levels.world));
  }
  if (map.widest() == 1) return std::move(levels.world);
  return std::make_unique<Hierarchical>(std::move(levels));
}

Hierarchical::Hierarchical(Levels levels)
    : OneRank(levels.world->heldRanks()[0]),
      map_(levels.nodeOf, rank()),
      timeoutMs_(levels.timeoutMs),
      world_(std::move(levels.world)),
      node_(std::move(levels.node)),
      leaders_(std::move(levels.leaders)) {
  if (leaders_) leaders_->follow(*world_);
}

Hierarchical::~Hierarchical() { close(); }

Hierarchical::RunningCall Hierarchical::begin(const Shape& shape, const CallOptions& options) {
  checkShape(shape, size());
  const double ms = options.timeoutMs < 0 ? timeoutMs_ : options.timeoutMs;
  // On a loaded machine the thread that knows who is late may wait this long for a core.
  return {shape, Deadline::in(ms), std::min(2000.0, 500 + ms / 20), options.name};
}

CallOptions Hierarchical::left(const RunningCall& call, Step step) {
  if (call.deadline.at() == Deadline::never().at())
    return {std::numeric_limits<double>::infinity(), call.name};
  const double ms =
      std::chrono::duration<double, std::milli>(call.deadline.at() - Deadline::Clock::now())
          .count();
  return {std::max(0.0, ms) + static_cast<double>(step) * call.graceMs, call.name};
}

void Hierarchical::run(const Call& call) {
  const Kind kind = call.shape.kind;
  const bool weighs = kind == Kind::neighborAllReduce;
  if (!isPlain(kind) && !weighs && !isMessage(kind)) return compose(call);
  guarded(call.op(), [&] {
    if (isMessage(kind)) return onWorld(call.op(), [&] { world_->run(call); });
    const RunningCall begun = begin(call.shape, call.options);
    if (kind == Kind::barrier) return agree(begun);
    checkBuffers(call.shape, call.buffers);
    if (isSmall(call.shape)) return smallAllReduce(begun, call.buffers);
    agree(begun);
    if (weighs) {
      Call rest = call;
      rest.options = left(begun, Step::node);
      return onWorld(call.op(), [&] { world_->run(rest); });
    }
    if (call.shape.count > 0) move(begun, call.buffers);
  });
}

void Hierarchical::smallAllReduce(const RunningCall& call, const Buffers& buffers) {
  const std::size_t bytes = call.shape.count * sizeOf(call.shape.dtype);
  std::byte small[kSmallBytes];
  if (bytes > 0) std::memcpy(small, buffers.in[0], bytes);
  agree(call, small);
  if (bytes > 0) std::memcpy(buffers.out[0], small, bytes);
}

void Hierarchical::move(const RunningCall& call, const Buffers& buffers) {
  const auto inOneStep = [&] {
    onWorld(call.op(), [&] { world_->collective(call.shape, buffers, left(call, Step::node)); });
  };
  if (averagesIntegers(call.shape)) return inOneStep();
  switch (call.shape.kind) {
    case Kind::allReduce:
      return runAllReduce(call, buffers);
    case Kind::reduce:
      return runReduce(call, buffers);
    case Kind::broadcast:
      return runBroadcast(call, buffers);
    case Kind::allGather:
      return runAllGather(call, buffers);
    case Kind::reduceScatter:
      return runReduceScatter(call, buffers);
    default:
      // Nothing is reduced, so a detour over the leaders would only cost time.
      inOneStep();
  }
}

std::unique_ptr<Communicator> Hierarchical::split(int color, int key, const CallOptions& o) {
  return guarded("split", [&]() -> std::unique_ptr<Communicator> {
    Shape shape;
    shape.kind = Kind::split;
    const RunningCall call = begin(shape, o);
    agree(call);
    Levels levels;
    levels.timeoutMs = timeoutMs_;
    onWorld("split", [&] { levels.world = world_->split(color, key, left(call, Step::node)); });
    onNode("split", [&] { levels.node = node_->split(color, key, left(call, Step::node)); });
    if (color < 0) return nullptr;
    Communicator& made = *levels.world;
    const Exchange exchange = exchangeOver(made, left(call, Step::node));
    levels.nodeOf = exchangeRecords(exchange, made.size(), map_.ownNode());
    const bool leads = levels.node->heldRanks()[0] == 0;
    levels.leaders = made.split(leads ? 0 : -1, made.heldRanks()[0], left(call, Step::node));
    return overHosts(std::move(levels));
  });
}

std::unique_ptr<Wire> Hierarchical::openWire(const CallOptions& o) {
  return guarded("openWire", [&]() -> std::unique_ptr<Wire> {
    Shape shape;
    const RunningCall call = begin(shape, o);
    agree(call);
    auto inside = onNode("openWire", [&] { return node_->openWire(left(call, Step::node)); });
    auto across = onWorld("openWire", [&] { return world_->openWire(left(call, Step::node)); });
    return makeHierarchicalWire(std::move(inside), std::move(across), map_);
  });
}

std::unique_ptr<Window> Hierarchical::openWindow(const WindowSpec& spec, const CallOptions& o) {
  return windows_.open(*this, spec, o);
}

void Hierarchical::abort(const std::string& reason) {
  const std::string name = std::to_string(rank());
  Error error(ErrorCode::aborted, "the communicator was aborted by rank " + name + ": " + reason);
  fail(error.withRank(rank()));
}

void Hierarchical::fail(const Error& error) {
  // The world first: every host hears it.
  world_->fail(fromWhole(error, size()));
  if (leaders_) leaders_->fail(fromWhole(error, map_.nodes()));
  node_->fail(fromWhole(error, static_cast<int>(map_.ownMembers().size())));
}

void Hierarchical::check(const char* op) {
  onNode(op, [&] { node_->check(op); });
  onWorld(op, [&] { world_->check(op); });
}

void Hierarchical::leave() {
  node_->leave();
  world_->leave();
  if (leaders_) leaders_->leave();
}

void Hierarchical::close() {
  if (closed_) return;
  closed_ = true;
  windows_.close();
  network_.drain();
  node_->close();
  if (leaders_) leaders_->close();
  world_->close();
}

}  // namespace gradlink
