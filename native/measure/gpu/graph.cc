#include "measure/gpu/graph.h"

#include "core/error.h"
#include "cuda/driver.h"

namespace gradlink::measure {
namespace {

/// NCCL's calls inside a capture may be ones that other modes forbid.
constexpr int kRelaxed = 2;

const cuda::Driver& driverWithGraphs() {
  const cuda::Driver& driver = cuda::Driver::get();
  if (driver.beginCapture == nullptr || driver.endCapture == nullptr ||
      driver.graphInstantiate == nullptr || driver.graphLaunch == nullptr ||
      driver.graphExecDestroy == nullptr || driver.graphDestroy == nullptr) {
    throw Error(ErrorCode::unsupported, "this driver has no graphs; they came with CUDA 11.4")
        .stillUsable();
  }
  return driver;
}

}  // namespace

GpuGraph::GpuGraph(cuda::Stream& stream) : stream_(stream) {
  const cuda::Driver& driver = driverWithGraphs();
  stream.device().makeCurrent();
  cuda::check(driver.beginCapture(stream.handle(), kRelaxed), "cannot begin to capture a graph");
  capturing_ = true;
}

GpuGraph::~GpuGraph() {
  // What fails here is a context that is broken, and with it went the graph.
  const cuda::Driver& driver = cuda::Driver::get();
  if (driver.setCurrent(stream_.device().context()) != cuda::kSuccess) return;
  if (capturing_) {
    cuda::GraphHandle captured = nullptr;
    driver.endCapture(stream_.handle(), &captured);
    if (captured != nullptr) driver.graphDestroy(captured);
  }
  if (graph_ != nullptr) driver.graphExecDestroy(graph_);
}

void GpuGraph::finish() {
  const cuda::Driver& driver = cuda::Driver::get();
  stream_.device().makeCurrent();
  cuda::GraphHandle captured = nullptr;
  capturing_ = false;
  cuda::check(driver.endCapture(stream_.handle(), &captured), "cannot capture a graph");
  const cuda::Status status = driver.graphInstantiate(&graph_, captured, 0);
  driver.graphDestroy(captured);
  cuda::check(status, "cannot make a graph of what was captured");
}

void GpuGraph::launch() {
  stream_.device().makeCurrent();
  cuda::check(cuda::Driver::get().graphLaunch(graph_, stream_.handle()), "cannot launch a graph");
}

}  // namespace gradlink::measure
