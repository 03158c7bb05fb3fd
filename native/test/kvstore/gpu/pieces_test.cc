// Large keys of the store that sums in the host's memory: they go in pieces, so that both
// directions of a link are busy, and come out as if they had gone whole.
#include "kvstore/local/local_store.h"
#include "test/fake/support.h"
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kGpuPiece = (4 << 20) / sizeof(float);

std::unique_ptr<Store> openHostStore(const std::vector<int>& gpus) {
  GpuStoreOptions options{.gpus = gpus, .merge = GpuMerge::host};
  return makeGpuStore(options);
}

/// Pushes and pulls in one submission.
void pushPull(Store& store, KeyId key, const GpuArrays& pushed, const GpuArrays& pulled) {
  runAll(
      store, [&](const auto& ticket) { return pushOf(key, pushed, ticket); },
      [&](const auto& ticket) { return pullOf(key, pulled, ticket); });
}

class GpuPiecesTime : public cuda::FreshFakes {
 protected:
  static constexpr double kRate = 50e9;

  /// In a process with one GPU: how long a push with a pull takes, in times of one direction alone.
  static double directionsOf(std::size_t count, const std::string& optimizer) {
    const auto store = openHostStore({0});
    const KeyId key = defineWith(*store, "large", Floats(count));
    if (!optimizer.empty()) store->setOptimizer(optimizerOf(optimizer));
    const GpuArrays arrays({0}, Floats(count, 1));
    // The first ones also bring the store's clocks past those of what filled the arrays.
    for (int i = 0; i < 3; ++i) pushPull(*store, key, arrays, arrays);
    const double began = simulatedNow();
    constexpr int kTimes = 3;
    for (int i = 0; i < kTimes; ++i) pushPull(*store, key, arrays, arrays);
    const double seconds = (simulatedNow() - began) / kTimes;
    return seconds / (static_cast<double>(count * sizeof(float)) / kRate);
  }

  static void run(const std::function<void()>& body) {
    cuda::expectFine({{"GRADLINK_FAKE_GPUS", "1"},
                      {"GRADLINK_FAKE_LINKS", "host-0=50e9"},
                      {"GRADLINK_FAKE_DUPLEX", "1"}},
                     body);
  }

 private:
  /// When everything that any stream of the GPU has done was done.
  static double simulatedNow() {
    cuda::use(0);
    EXPECT_EQ(cuda::driver().contextSynchronize(), cuda::kSuccess);
    static const cuda::RawEvent& start = *new cuda::RawEvent(0);
    static cuda::RawStream& stream = *new cuda::RawStream(0);
    static const cuda::Status recorded = start.record(stream);
    EXPECT_EQ(recorded, cuda::kSuccess);
    const cuda::RawEvent now(0);
    EXPECT_EQ(now.record(stream), cuda::kSuccess);
    EXPECT_EQ(stream.synchronize(), cuda::kSuccess);
    return now.secondsSince(start);
  }
};

TEST_F(GpuPiecesTime, LargeKeysTakeOneDirectionWhereTheirPiecesGoApart) {
  // 16 pieces: all of one direction, and one piece of the other.
  for (const char* optimizer : {"", "adam"}) {
    run([&] { EXPECT_NEAR(directionsOf(16 * kGpuPiece, optimizer), 1 + 1.0 / 16, 0.01); });
  }
  // What needs all of a key first takes both, and so does a key of one piece.
  run([] { EXPECT_NEAR(directionsOf(4 * kGpuPiece, "lamb"), 2, 0.01); });
  run([] { EXPECT_NEAR(directionsOf(kGpuPiece, ""), 2, 0.01); });
}

class GpuPieces : public testing::Test {
 protected:
  const std::vector<int> gpus{0, cuda::Device::count() > 1 ? 1 : 0};
};

TEST_F(GpuPieces, SumsAreThoseOfWholeKeys) {
  std::mt19937 random(5);
  for (const std::size_t count : {kGpuPiece - 1, kGpuPiece, kGpuPiece + 1, 3 * kGpuPiece + 17}) {
    const auto store = openHostStore(gpus);
    const KeyId key = defineWith(*store, "k", Floats(count));
    const std::vector<Floats> values{randomFloats(random, count), randomFloats(random, count)};
    const GpuArrays pushed(gpus, values);
    const GpuArrays pulled(gpus, Floats(count, -1));
    pushPull(*store, key, pushed, pulled);
    Floats expected(count);
    for (std::size_t i = 0; i < count; ++i) expected[i] = values[0][i] + values[1][i];
    for (const Floats& got : pulled.read()) EXPECT_EQ(got, expected) << count;
    // In place.
    pushPull(*store, key, pushed, pushed);
    for (const Floats& got : pushed.read()) EXPECT_EQ(got, expected) << count;
  }
}

TEST_F(GpuPieces, OptimizersStepToTheBitsOfTheHost) {
  constexpr std::size_t kCount = 2 * kGpuPiece + 5000;
  for (const char* name : {"adam", "lamb"}) {
    const auto store = openHostStore(gpus);
    LocalStore cpu(Placement::devices, gpus.size());
    std::mt19937 random(7);
    const Floats first = randomFloats(random, kCount);
    const KeyId key = defineWith(*store, "k", first);
    ASSERT_EQ(makeKey(cpu, "k", first), key);
    store->setOptimizer(optimizerOf(name, {{"wd", 0.01}}));
    cpu.setOptimizer(optimizerOf(name, {{"wd", 0.01}}));
    const GpuArrays pulled(gpus, Floats(kCount, -1));
    for (int i = 0; i < 2; ++i) {
      std::vector<Floats> grads{randomFloats(random, kCount), randomFloats(random, kCount)};
      run(cpu, OperationKind::push, key, grads);
      pushPull(*store, key, GpuArrays(gpus, grads), pulled);
    }
    std::vector<Floats> expected(1, Floats(kCount));
    run(cpu, OperationKind::pull, key, expected);
    for (const Floats& got : pulled.read()) EXPECT_TRUE(got == expected[0]) << name;
  }
}

/// What is pulled begins in the middle of what is pushed: all of it must have arrived before.
TEST_F(GpuPieces, ArraysThatShareMemoryGoWhole) {
  constexpr std::size_t kCount = 3 * kGpuPiece;
  constexpr std::size_t kShift = 1000;
  std::mt19937 random(9);
  const auto store = openHostStore({0});
  const KeyId key = defineWith(*store, "k", Floats(kCount));
  Floats all = randomFloats(random, kCount + kShift);
  const GpuBytes memory(0, all.data(), all.size() * sizeof(float));
  auto* const start = static_cast<float*>(memory.data());
  runAll(
      *store,
      [&](const auto& ticket) {
        Operation made{.kind = OperationKind::push,
                       .key = key,
                       .in = {start},
                       .inGpus = {0},
                       .ticket = ticket};
        return made;
      },
      [&](const auto& ticket) {
        Operation made{.kind = OperationKind::pull,
                       .key = key,
                       .out = {start + kShift},
                       .outGpus = {0},
                       .ticket = ticket};
        return made;
      });
  Floats got(all.size());
  memory.read(got.data());
  std::copy_backward(all.begin(), all.end() - kShift, all.end());
  EXPECT_TRUE(got == all);
}

}  // namespace
}  // namespace gradlink::test
