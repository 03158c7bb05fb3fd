#include "cuda/graph.h"

#include "core/error.h"
#include "cuda/abi_numbers.h"
#include "cuda/driver.h"

namespace gradlink::cuda {
namespace {

const Driver& driverWithGraphs() {
  const Driver& driver = Driver::get();
  if (driver.beginCapture == nullptr || driver.endCapture == nullptr ||
      driver.graphInstantiate == nullptr || driver.graphLaunch == nullptr ||
      driver.graphExecDestroy == nullptr || driver.graphDestroy == nullptr) {
    throw Error(ErrorCode::unsupported, "this driver has no graphs; they came with CUDA 11.4")
        .stillUsable();
  }
  return driver;
}

}  // namespace

Graph::Graph(Stream& stream) : stream_(stream) {
  const Driver& driver = driverWithGraphs();
  stream.device().makeCurrent();
  // NCCL may make calls that the other capture modes forbid.
  check(driver.beginCapture(stream.handle(), kCaptureRelaxed), "cannot begin to capture a graph");
  capturing_ = true;
}

Graph::~Graph() {
  // A failure means a broken context, and the graph has gone with it.
  const Driver& driver = Driver::get();
  if (driver.setCurrent(stream_.device().context()) != kSuccess) return;
  if (capturing_) {
    GraphHandle captured = nullptr;
    driver.endCapture(stream_.handle(), &captured);
    if (captured != nullptr) driver.graphDestroy(captured);
  }
  if (graph_ != nullptr) driver.graphExecDestroy(graph_);
}

void Graph::finish() {
  const Driver& driver = Driver::get();
  stream_.device().makeCurrent();
  GraphHandle captured = nullptr;
  capturing_ = false;
  check(driver.endCapture(stream_.handle(), &captured), "cannot capture a graph");
  const Status status = driver.graphInstantiate(&graph_, captured, 0);
  driver.graphDestroy(captured);
  check(status, "cannot make a graph of what was captured");
}

void Graph::launch() {
  stream_.device().makeCurrent();
  check(Driver::get().graphLaunch(graph_, stream_.handle()), "cannot launch a graph");
}

}  // namespace gradlink::cuda
