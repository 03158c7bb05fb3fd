#include "measure/gpu/collective.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "core/error.h"
#include "cuda/graph.h"
#include "cuda/kept_memory.h"
#include "measure/gpu/collective_data.h"
#include "measure/gpu/stream_hold.h"

namespace gradlink::measure {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// A stream holds about a thousand entries, an NCCL call takes up to five; then launches block.
constexpr std::size_t kMostHeldGroups = 128;

[[noreturn]] void refuseGpuCollective(ErrorCode code, const std::string& message) {
  throw Error(code, message).withOp("timeCollective").stillUsable();
}

void check(const nccl::NcclCommunicator& comm, const GpuCollectiveOptions& options) {
  if (options.count == 0 || options.samples < 1 || options.batch < 1 || options.warmup < 0 ||
      options.graphLaunches < 0) {
    refuseGpuCollective(
        ErrorCode::invalidArgument,
        "expected at least one element, sample and call a sample, and no negative number");
  }
  if (options.root < 0 || options.root >= comm.size()) {
    refuseGpuCollective(ErrorCode::invalidArgument, "root must be a rank below " +
                                                        std::to_string(comm.size()) + ", got " +
                                                        std::to_string(options.root));
  }
  if (options.collective->kind == Kind::barrier) {
    refuseGpuCollective(ErrorCode::unsupported,
                        "NCCL has no barrier of its own that could be timed");
  }
  const CollectiveRecord& record = *options.collective;
  if (options.inPlace && record.inPlace == InPlace::none) {
    refuseGpuCollective(ErrorCode::invalidArgument,
                        std::string(record.name) + " has no in-place form");
  }
  const bool calledApart =
      options.graphLaunches > 0 || options.waiting != Waiting::none || options.aggregate;
  if (options.shiftedThrough > 0 && calledApart) {
    refuseGpuCollective(ErrorCode::invalidArgument,
                        "shifted arrays need consecutive calls: no graph, no group and no waiting");
  }
  if (options.graphLaunches > 0 && options.waiting != Waiting::none) {
    refuseGpuCollective(ErrorCode::invalidArgument,
                        "the calls of a graph cannot be waited for one by one");
  }
}

class GpuCollectiveMeasurement {
 public:
  GpuCollectiveMeasurement(nccl::NcclCommunicator& comm, const GpuCollectiveOptions& options)
      : comm_(comm),
        options_(options),
        record_(*options.collective),
        call_{options.timeoutMs},
        shape_(record_.shape(options.count, options.dtype, options.op, options.root)),
        data_(comm, options, record_) {
    if (isMessages()) messages_ = record_.made.messages(shape_.count, shape_.dtype, comm.size());
    for (cuda::Stream* stream : data_.streams()) {
      starts_.push_back(std::make_unique<cuda::Event>(stream->device(), true));
      stops_.push_back(std::make_unique<cuda::Event>(stream->device(), true));
    }
  }

  GpuCollectiveResult run() {
    // Between calls of a batch, queued work also waits for other ranks: nothing may be freed.
    const cuda::KeepMemory keeping;
    const cuda::Launching othersMayLaunch(true, Deadline::in(timeoutMs()), record_.name);
    if (options_.registration)
      result_.registered = data_.registerAll(*options_.registration, call_);
    comm_.barrier(call_);
    if (options_.verify) {
      callAndWait(1);
      result_.wrongBefore = countWrong();
      data_.fill();
    }
    comm_.barrier(call_);
    callAndWait(options_.warmup);
    if (options_.graphLaunches > 0) capture();
    for (int sample = 0; sample < options_.samples; ++sample) {
      if (options_.shiftedThrough > 0) {
        takeShiftedSample();
      } else {
        takeSample(sample);
      }
    }
    if (options_.verify && options_.shiftedThrough > 0) {
      data_.fill();
      comm_.barrier(call_);
      callAndWait(1);
    }
    if (options_.verify) result_.wrongAfter = countWrong();
    if (queued_ > 0) result_.queueingSeconds = queueing_.count() / queued_;
    combine();
    comm_.barrier(call_);
    return std::move(result_);
  }

 private:
  double timeoutMs() const { return call_.timeoutMs < 0 ? kDefaultTimeoutMs : call_.timeoutMs; }

  bool isMessages() const { return !record_.kind; }
  /// Scans copy to scratch memory.
  bool isScan() const { return record_.kind == Kind::scan || record_.kind == Kind::exscan; }

  /// Whether streams wait until the batch is queued on all GPUs: launching an abortable call takes
  /// tens of microseconds. Not for a first call: it connects and allocates, which needs free
  /// streams.
  bool holdsFor(int batch) const {
    const bool warm = options_.warmup > 0 || options_.verify;
    const std::size_t groups = std::max<std::size_t>(messages_.size(), 1);
    return holding_ && warm && !options_.aggregate && !isScan() &&
           groups * static_cast<std::size_t>(batch) <= kMostHeldGroups && comm_.barrierOnHost();
  }

  void enqueue(int times) { enqueue(times, data_.buffers()); }

  void enqueue(int times, const Buffers& buffers) {
    const nccl::Launch launch{shape_, buffers};
    // The calls of a scan share their scratch memory.
    if (options_.aggregate && !isMessages() && !isScan()) {
      const std::vector<nccl::Launch> launches(static_cast<std::size_t>(times), launch);
      if (times > 0) comm_.enqueue(launches, data_.streams(), call_);
      return;
    }
    for (int i = 0; i < times; ++i) {
      if (isMessages()) {
        comm_.enqueueMessages(record_.name, messages_, launch.buffers, shape_.dtype,
                              data_.streams(), call_);
      } else {
        comm_.enqueue({&launch, 1}, data_.streams(), call_);
      }
    }
  }

  void wait() {
    const Deadline deadline = Deadline::in(timeoutMs());
    try {
      for (cuda::Stream* stream : data_.streams()) {
        cuda::await([&] { return stream->done(); }, deadline, record_.name,
                    [&] { comm_.check(record_.name); });
      }
    } catch (const Error& error) {
      // A collective that never ends would hold the streams forever.
      if (error.code == ErrorCode::timeout) comm_.abort(error.what());
      throw;
    }
  }

  void callAndWait(int times) {
    enqueue(times);
    wait();
  }

  void capture() {
    for (cuda::Stream* stream : data_.streams()) {
      graphs_.push_back(std::make_unique<cuda::Graph>(*stream));
    }
    enqueue(options_.batch);
    for (const auto& graph : graphs_) graph->finish();
  }

  void takeSample(int sample) {
    // In place, repeated reductions take their own results as input. The last sample is a single
    // call on fresh data, so that a timed call is checked.
    const bool last = sample + 1 == options_.samples;
    const bool once = last && options_.verify && options_.inPlace && record_.reduces();
    if (last && options_.verify) data_.fill();
    comm_.barrier(call_);
    const int batch = once ? 1 : options_.batch;
    const bool graph = options_.graphLaunches > 0 && !once;
    const int calls = graph ? batch * options_.graphLaunches : batch;
    const double seconds =
        options_.waiting == Waiting::none ? timeQueued(batch, graph) : timeWaiting(batch);
    result_.seconds.push_back(seconds / calls);
    result_.totalSeconds += seconds;
  }

  void takeShiftedSample() {
    comm_.barrier(call_);
    const Clock::time_point begin = Clock::now();
    for (int call = 0; call < options_.batch; ++call) enqueue(1, data_.buffersOf(call));
    queueing_ += Clock::now() - begin;
    queued_ += options_.batch;
    wait();
    const Seconds seconds = Clock::now() - begin;
    result_.seconds.push_back(seconds.count() / options_.batch);
    result_.totalSeconds += seconds.count();
  }

  void queueTimed(int batch, bool graph) {
    const std::span<cuda::Stream* const> streams = data_.streams();
    for (std::size_t i = 0; i < streams.size(); ++i) starts_[i]->record(*streams[i]);
    const Clock::time_point begin = Clock::now();
    if (graph) {
      const cuda::Launching inOrder(!holdsAll(), Deadline::in(timeoutMs()), record_.name);
      for (int i = 0; i < options_.graphLaunches; ++i) {
        for (const auto& one : graphs_) one->launch();
      }
    } else {
      enqueue(batch);
    }
    queueing_ += Clock::now() - begin;
    queued_ += graph ? batch * options_.graphLaunches : batch;
    for (std::size_t i = 0; i < streams.size(); ++i) stops_[i]->record(*streams[i]);
  }

  void queueHeld(int batch) {
    // Other launches need not wait for a held stream.
    const cuda::Launching inOrder(!holdsAll(), Deadline::in(timeoutMs()), record_.name);
    hold_.begin();
    try {
      for (cuda::Stream* stream : data_.streams()) hold_.hold(*stream);
      queueTimed(batch, false);
      comm_.barrier(call_);
    } catch (...) {
      hold_.end();
      throw;
    }
    // If queueing takes this long, its time counts and holding gains nothing.
    holding_ = hold_.end();
  }

  /// By the devices' clocks; the slowest of the held ones.
  double timeQueued(int batch, bool graph) {
    const std::span<cuda::Stream* const> streams = data_.streams();
    if (!graph && holdsFor(batch)) {
      queueHeld(batch);
    } else {
      queueTimed(batch, graph);
    }
    wait();
    double longest = 0;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      longest = std::max(longest, stops_[i]->secondsSince(*starts_[i]));
    }
    return longest;
  }

  /// By the host's clock.
  double timeWaiting(int batch) {
    Seconds total{0};
    for (int i = 0; i < batch; ++i) {
      const Clock::time_point start = Clock::now();
      callAndWait(1);
      if (options_.waiting == Waiting::withBarrier) comm_.barrier(call_);
      total += Clock::now() - start;
      if (options_.waiting == Waiting::untimedBarrier) comm_.barrier(call_);
    }
    return total.count();
  }

  bool holdsAll() const {
    return comm_.heldRanks().size() == static_cast<std::size_t>(comm_.size());
  }

  /// Reduces one list for each process over all processes.
  void reduceOverJob(void* values, std::size_t count, DType dtype, ReduceOp op) {
    const std::size_t bytes = count * sizeOf(dtype);
    cuda::Stream& stream = *data_.streams().front();
    const cuda::DeviceMemory memory(stream.device(), bytes);
    stream.copy(memory.data(), values, bytes);
    stream.synchronize();
    const void* const in[] = {memory.data()};
    void* const out[] = {memory.data()};
    comm_.allReduce({in, out}, count, dtype, op, call_);
    stream.copy(values, memory.data(), bytes);
    stream.synchronize();
  }

  std::uint64_t sumOverJob(std::uint64_t mine) {
    if (!holdsAll()) reduceOverJob(&mine, 1, DType::uint64, ReduceOp::sum);
    return mine;
  }

  std::uint64_t countWrong() {
    const std::uint64_t mine = data_.countWrong();
    if (mine > 0 && !result_.firstWrong) result_.firstWrong = data_.firstWrong();
    return sumOverJob(mine);
  }

  void combine() {
    if (holdsAll() || options_.combine == Combine::own) return;
    constexpr ReduceOp kOps[] = {ReduceOp::max, ReduceOp::avg, ReduceOp::min, ReduceOp::max};
    std::vector<double>& list = result_.seconds;
    list.push_back(result_.totalSeconds);
    reduceOverJob(list.data(), list.size(), DType::float64,
                  kOps[static_cast<int>(options_.combine)]);
    result_.totalSeconds = list.back();
    list.pop_back();
  }

  nccl::NcclCommunicator& comm_;
  const GpuCollectiveOptions& options_;
  const CollectiveRecord& record_;
  CallOptions call_;
  Shape shape_;
  /// Streams read its flag until `data_` has waited for them.
  StreamHold hold_;
  GpuCollectiveData data_;
  MessageSteps messages_;
  std::vector<std::unique_ptr<cuda::Event>> starts_;
  std::vector<std::unique_ptr<cuda::Event>> stops_;
  std::vector<std::unique_ptr<cuda::Graph>> graphs_;
  bool holding_ = true;
  Seconds queueing_{0};
  int queued_ = 0;
  GpuCollectiveResult result_;
};

}  // namespace

GpuCollectiveResult timeGpuCollective(nccl::NcclCommunicator& comm,
                                      const GpuCollectiveOptions& options) {
  check(comm, options);
  return GpuCollectiveMeasurement(comm, options).run();
}

}  // namespace gradlink::measure
