// GPUs that do not reach one another: what they exchange goes through page-locked memory, whole,
// in pieces that overlap, and holds nobody up.
#include <numeric>

#include "kvstore/gpu/staging.h"
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

Floats counted(std::size_t count, float first) {
  Floats values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Two places, which are one GPU where there is only one.
struct Two {
  GpuEvents events;
  std::vector<cuda::Device*> devices{&cuda::Device::get(0),
                                     &cuda::Device::get(cuda::Device::count() > 1 ? 1 : 0)};
  GpuStaging staging{events, devices};
  cuda::Stream stream{*devices[0]};
  int gpu(std::size_t place) const { return devices[place]->ordinal(); }
};

TEST(GpuStaging, CopiesOfAllSizesArriveWhole) {
  Two two;
  // Several are on their way at once, and together they are more than what they pass through.
  std::vector<GpuBytes> from;
  std::vector<GpuBytes> to;
  std::vector<GpuSpread> spreads;
  const std::size_t counts[] = {1, 63, 1000, 524'288, 524'289, 5'000'000, 7};
  for (std::size_t count : counts) {
    const std::size_t source = from.size() % 2;
    from.emplace_back(two.gpu(source), counted(count, static_cast<float>(count)).data(),
                      count * sizeof(float));
    to.emplace_back(two.gpu(1 - source), Floats(count).data(), count * sizeof(float));
    spreads.push_back(
        {{from.back().data(), source}, {{to.back().data(), 1 - source}}, count * sizeof(float)});
  }
  two.staging.copy(two.stream, spreads);
  two.stream.synchronize();
  for (std::size_t i = 0; i < to.size(); ++i) {
    Floats got(counts[i]);
    to[i].read(got.data());
    EXPECT_EQ(got, counted(counts[i], static_cast<float>(counts[i]))) << counts[i];
  }
  EXPECT_TRUE(two.staging.quiesce(Deadline::in(kEndingMs)));
}

TEST(GpuStaging, ComesAfterWhatTheStreamHasToDo) {
  Two two;
  constexpr std::size_t kCount = 100'000;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  const GpuBytes first(two.gpu(0), counted(kCount, 1).data(), kBytes);
  const GpuBytes middle(two.gpu(0), Floats(kCount).data(), kBytes);
  const GpuBytes there(two.gpu(1), Floats(kCount).data(), kBytes);
  const GpuBytes back(two.gpu(0), Floats(kCount).data(), kBytes);
  const GpuSpread going{{middle.data(), 0}, {{there.data(), 1}}, kBytes};
  const GpuSpread coming{{there.data(), 1}, {{middle.data(), 0}}, kBytes};
  two.stream.copy(middle.data(), first.data(), kBytes);
  two.staging.copy(two.stream, {&going, 1});
  two.stream.zero(middle.data(), kBytes);
  two.staging.copy(two.stream, {&coming, 1});
  two.stream.copy(back.data(), middle.data(), kBytes);
  two.stream.synchronize();
  Floats got(kCount);
  back.read(got.data());
  EXPECT_EQ(got, counted(kCount, 1));
}

using GpuStagingOnFakes = cuda::FreshFakes;

TEST_F(GpuStagingOnFakes, PiecesOfBothDirectionsOverlap) {
  cuda::expectFine({{"GRADLINK_FAKE_PEERS", "none"},
                    {"GRADLINK_FAKE_LINKS", "host-0=16e9,host-1=16e9"},
                    {"GRADLINK_FAKE_DUPLEX", "1"}},
                   [] {
                     Two two;
                     constexpr std::size_t kCount = 8 << 20;
                     constexpr std::size_t kBytes = kCount * sizeof(float);
                     const Floats values(kCount, 1);
                     const GpuBytes here(0, values.data(), kBytes);
                     const GpuBytes there(1, values.data(), kBytes);
                     const GpuBytes fromHere(1, values.data(), kBytes);
                     const GpuBytes fromThere(0, values.data(), kBytes);
                     const GpuSpread spreads[] = {
                         {{here.data(), 0}, {{fromHere.data(), 1}}, kBytes},
                         {{there.data(), 1}, {{fromThere.data(), 0}}, kBytes}};
                     cuda::Event begun(*two.devices[0], true);
                     cuda::Event ended(*two.devices[0], true);
                     begun.record(two.stream);
                     two.staging.copy(two.stream, spreads);
                     ended.record(two.stream);
                     two.stream.synchronize();
                     // One way of the whole, and one piece's other way: neither
                     // direction, nor down and up, one after the other.
                     const double oneWay = kBytes / 16e9;
                     EXPECT_GE(ended.secondsSince(begun), oneWay);
                     EXPECT_LT(ended.secondsSince(begun), 1.1 * oneWay);
                   });
}

/// What is in the way of a copy is the GPU's time, not the engine's: it goes on looking.
TEST_F(GpuStagingOnFakes, SlowACopyBehindAKernelThatNeverEndsIsATimeout) {
  cuda::expectFine({{"GRADLINK_FAKE_PEERS", "none"}, {"GRADLINK_FAKE_FAULTS", "stuck-launch=1"}},
                   [] {
                     GpuStoreOptions options{.gpus = {0, 1}, .merge = GpuMerge::peer};
                     // Enough for what comes before the kernel.
                     options.timeoutMs = 2000;
                     const auto store = makeGpuStore(options);
                     const KeyId key = defineWith(*store, "a", Floats(100'000));
                     const GpuArrays arrays(options.gpus, Floats(100'000, 1));
                     const auto pushPull = [&] {
                       runAll(
                           *store, [&](const auto& ticket) { return pushOf(key, arrays, ticket); },
                           [&](const auto& ticket) { return pullOf(key, arrays, ticket); });
                     };
                     cuda::messageOf(ErrorCode::timeout, pushPull);
                     store->stop();
                     std::_Exit(testing::Test::HasFailure() ? 2 : 0);
                   });
}

TEST(GpuStoreWithoutPeers, NcclIsRefused) {
  GpuStoreOptions options{.gpus = {0}, .merge = GpuMerge::nccl, .peer = false};
  const std::string text = cuda::messageOf(ErrorCode::unsupported, [&] { makeGpuStore(options); });
  EXPECT_NE(text.find("NCCL_P2P_DISABLE"), std::string::npos) << text;
}

}  // namespace
}  // namespace gradlink::test
