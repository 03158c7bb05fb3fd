// When the calls of a timed collective may run: not before all of a batch are queued on all ranks.
#include "cuda/kept_memory.h"
#include "measure/gpu/collective.h"
#include "measure/gpu/stream_hold.h"
#include "test/cuda/support.h"

namespace gradlink::measure {
namespace {

using cuda::Device;

/// Rank 0 of two, on one GPU; calls do nothing but note what the stream has done.
class Watched final : public nccl::NcclCommunicator {
 public:
  explicit Watched(bool barrierOnHost) : onHost_(barrierOnHost) {}

  /// Whether the stream was at its end, at each barrier that followed calls.
  std::vector<bool> doneAtBarriers;
  /// Of each call.
  std::vector<const char*> inputs;
  std::function<void()> onEnqueue;

  int size() const override { return 2; }
  std::span<const int> heldRanks() const override { return {ranks_, 1}; }
  const char* backend() const override { return "nccl"; }
  std::span<Device* const> devices() const override { return {devices_, 1}; }
  bool barrierOnHost() const override { return onHost_; }
  void enqueue(std::span<const nccl::Launch> launches, std::span<cuda::Stream* const> streams,
               const CallOptions&) override {
    inputs.push_back(static_cast<const char*>(launches.front().buffers.in.front()));
    queued_ = streams.front();
    if (onEnqueue) onEnqueue();
  }
  void run(const Call& call) override {
    if (call.shape.kind != Kind::barrier) refuse();
    if (queued_ == nullptr) return;
    doneAtBarriers.push_back(queued_->done());
    queued_ = nullptr;
  }
  void check(const char*) override {}
  void abort(const std::string&) override {}
  void close() override {}

  std::vector<std::optional<double>> estimateSeconds(std::span<const Shape>,
                                                     const CallOptions&) override {
    return refuse();
  }
  void enqueueMessages(const char*, const MessageSteps&, const Buffers&, DType,
                       std::span<cuda::Stream* const>, const CallOptions&) override {
    refuse();
  }
  std::vector<nccl::HeldPart> splitHeld(std::span<const nccl::Claim>, const CallOptions&) override {
    refuse();
    return {};
  }
  std::vector<std::unique_ptr<Window>> openWindows(std::span<const WindowSpec>,
                                                   const CallOptions&) override {
    refuse();
    return {};
  }
  void runTogether(std::span<const nccl::Launch>, const CallOptions&) override { refuse(); }
  std::vector<std::unique_ptr<nccl::RegisteredMemory>> allocRegistered(
      std::size_t, const CallOptions&) override {
    return {};
  }
  std::unique_ptr<nccl::Registration> registerMemory(std::span<void* const>, std::size_t,
                                                     nccl::RegistrationKind,
                                                     const CallOptions&) override {
    return refuse();
  }
  void* allocShared(std::size_t) override { return refuse(); }
  void freeShared(void*) override {}
  std::unique_ptr<Communicator> split(int, int, const CallOptions&) override { return refuse(); }

 private:
  /// Of a call that measuring does not make.
  struct Nothing {
    template <class T>
    operator T() const {  // NOLINT(google-explicit-constructor)
      return T{};
    }
  };
  static Nothing refuse() {
    ADD_FAILURE() << "an unexpected call";
    return {};
  }

  bool onHost_;
  int ranks_[1] = {0};
  Device* devices_[1] = {&Device::get(0)};
  cuda::Stream* queued_ = nullptr;
};

GpuCollectiveOptions twoSamples() {
  GpuCollectiveOptions options;
  options.collective = &recordNamed("allReduce");
  options.count = 16;
  options.warmup = 1;
  options.samples = 2;
  options.batch = 3;
  options.combine = Combine::own;
  options.verify = false;
  return options;
}

TEST(GpuCollectives, BeginWhenAllAreQueuedOnAllRanks) {
  Watched comm(true);
  timeGpuCollective(comm, twoSamples());
  // After the warm-up, and within each sample.
  EXPECT_EQ(comm.doneAtBarriers, (std::vector<bool>{true, false, false}));
}

TEST(GpuCollectives, BeginAtOnceWhereThatCouldWaitForEver) {
  Watched onGpus(false);
  timeGpuCollective(onGpus, twoSamples());
  EXPECT_EQ(onGpus.doneAtBarriers, (std::vector<bool>{true, true, true}));

  // A first call connects, and a long batch is more than a stream takes.
  for (const auto& [warmup, batch] : {std::pair{0, 3}, std::pair{1, 2000}}) {
    Watched comm(true);
    GpuCollectiveOptions options = twoSamples();
    options.warmup = warmup;
    options.batch = batch;
    timeGpuCollective(comm, options);
    for (const bool done : comm.doneAtBarriers) EXPECT_TRUE(done) << warmup << ' ' << batch;
  }
}

/// As nccl-tests: nothing is held, and the arrays go through the memory and begin anew.
TEST(GpuCollectives, ShiftTheirArraysThroughTheMemory) {
  Watched comm(true);
  GpuCollectiveOptions options = twoSamples();
  options.samples = 1;
  options.batch = 5;
  const std::size_t bytes = options.count * sizeof(float);
  options.shiftedThrough = 3 * bytes + 8;
  const GpuCollectiveResult result = timeGpuCollective(comm, options);
  ASSERT_EQ(comm.inputs.size(), 6u);
  std::vector<std::size_t> shifts;
  for (const char* input : comm.inputs) shifts.push_back(input - comm.inputs.front());
  EXPECT_EQ(shifts, (std::vector<std::size_t>{0, 0, bytes, 2 * bytes, 0, bytes}));
  EXPECT_EQ(comm.doneAtBarriers, (std::vector<bool>{true, true}));
  EXPECT_EQ(result.seconds.size(), 1u);
  EXPECT_NEAR(result.totalSeconds, 5 * result.seconds[0], 1e-12);

  options.aggregate = true;
  cuda::messageOf(ErrorCode::invalidArgument, [&] { timeGpuCollective(comm, options); });
}

TEST(GpuCollectives, FreeNothingBetweenTheirCalls) {
  static bool freed = false;
  const cuda::MemorySource source{nullptr,
                                  [](void** memory, std::size_t) {
                                    *memory = &freed;
                                    return cuda::kSuccess;
                                  },
                                  [](void*) { freed = true; }};
  Watched comm(true);
  comm.onEnqueue = [&] {
    EXPECT_FALSE(freed);
    void* memory = nullptr;
    cuda::takeMemory(source, 1, &memory);
    cuda::giveMemoryBack(source, 1, memory);
  };
  timeGpuCollective(comm, twoSamples());
  EXPECT_TRUE(freed);
}

TEST(GpuStreamHold, LetsGoWhenToldAndSaysThatItHeld) {
  Device& device = Device::get(0);
  cuda::Stream stream(device);
  StreamHold hold;
  for (int i = 0; i < 2; ++i) {
    hold.begin();
    hold.hold(stream);
    EXPECT_FALSE(stream.done());
    EXPECT_TRUE(hold.end());
    stream.synchronize();
  }
}

}  // namespace
}  // namespace gradlink::measure
