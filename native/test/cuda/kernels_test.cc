// Sums on a device are the host's, bit for bit; copies, chases and holds do what they say.
#include "cuda/kernels.h"

#include <thread>

#include "core/kernels/reduce_kernels.h"
#include "test/cuda/support.h"
#include "test/device_support.h"
#include "test/reference.h"

namespace gradlink::cuda {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Values of the type's whole range; for floats any but NaN, whose payload may differ.
Bytes randomValues(DType dtype, std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count * sizeOf(dtype));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const std::size_t size = sizeOf(dtype);
  if (!isFloat(dtype)) return bytes;
  // The exponent's highest bit off: finite, and sums of hundreds stay so.
  for (std::size_t i = 0; i < count; ++i) bytes[i * size + size - 1] &= 0xbf;
  return bytes;
}

struct SumCase {
  std::size_t count;
  std::size_t sources;
  std::size_t targets;
  /// Elements by which the arrays miss an alignment of 16 bytes.
  std::size_t offset = 0;
  /// The targets are the first sources.
  bool inPlace = false;
};

class DeviceSum : public testing::TestWithParam<int> {
 protected:
  DType dtype() const { return static_cast<DType>(GetParam()); }
};

TEST_P(DeviceSum, IsTheHosts) {
  OneGpu gpu;
  const std::size_t tile = 16384 / sizeOf(dtype());
  std::vector<SumCase> cases = {{1, 1, 1},
                                {1, 2, 1},
                                {3, 4, 2},
                                {tile - 1, 3, 1},
                                {tile, 2, 1},
                                {tile, 1, 3},
                                {tile + 1, 5, 2},
                                {2 * tile, 8, 1},
                                {3 * tile + 7, 17, 4},
                                {tile + 5, 3, 2, 1},
                                {777, 1, 1, 1},
                                {0, 2, 1},
                                {10001, 2, 2, 0, true}};
  // All at once: every block has to find the right piece.
  std::vector<SumTask> tasks;
  std::vector<std::vector<Bytes>> hostSources;
  std::vector<std::vector<DeviceArray<std::uint8_t>>> arrays;
  for (const SumCase& each : cases) {
    std::vector<Bytes>& sources = hostSources.emplace_back();
    std::vector<DeviceArray<std::uint8_t>>& there = arrays.emplace_back();
    SumTask& task = tasks.emplace_back();
    task.count = each.count;
    for (std::size_t s = 0; s < each.sources; ++s) {
      sources.push_back(randomValues(dtype(), each.count, static_cast<unsigned>(s + each.count)));
      there.emplace_back(gpu, sources.back(), each.offset * sizeOf(dtype()));
      task.sources.push_back(there.back().data());
    }
    for (std::size_t t = 0; t < each.targets; ++t) {
      if (!each.inPlace) {
        there.emplace_back(gpu, Bytes(each.count * sizeOf(dtype())), each.offset * sizeOf(dtype()));
      }
      task.targets.push_back(each.inPlace ? there[t].data() : there.back().data());
    }
  }
  sum(gpu.stream, gpu.ring, dtype(), tasks);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const SumCase& each = cases[i];
    Bytes expected(each.count * sizeOf(dtype()));
    std::vector<const void*> sources;
    for (const Bytes& source : hostSources[i]) sources.push_back(source.data());
    void* const out[] = {expected.data()};
    reduceMany(out, sources, each.count, dtype(), ReduceOp::sum);
    for (std::size_t j = 0; j < arrays[i].size(); ++j) {
      const bool isTarget = each.inPlace ? j < each.targets : j >= each.sources;
      const Bytes& want = isTarget ? expected : hostSources[i][j];
      EXPECT_TRUE(sameBits(arrays[i][j].read(), want))
          << nameOf(dtype()) << ", " << each.count << " elements of " << each.sources
          << " sources, array " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceSum, testing::Range(0, kCommonDTypeCount),
                         [](const auto& info) {
                           return std::string(nameOf(static_cast<DType>(info.param)));
                         });

TEST(DeviceSumOfFloats, KeepsInfinitiesSignsAndNotNumbers) {
  OneGpu gpu;
  const float inf = INFINITY;
  const float tiny = 1e-45f;
  const std::vector<float> a = {inf, -inf, inf, -0.0f, tiny, 3e38f, NAN, 1.0f};
  const std::vector<float> b = {1, -1, -inf, -0.0f, tiny, 3e38f, 1.0f, NAN};
  DeviceArray<float> thereA(gpu, a);
  DeviceArray<float> thereB(gpu, b);
  const SumTask task{{thereA.data(), thereB.data()}, {thereA.data()}, a.size()};
  sum(gpu.stream, gpu.ring, DType::float32, {&task, 1});
  const std::vector<float> sum = thereA.read();
  EXPECT_EQ(sum[0], inf);
  EXPECT_EQ(sum[1], -inf);
  EXPECT_TRUE(std::isnan(sum[2]));
  EXPECT_TRUE(sum[3] == 0 && std::signbit(sum[3]));
  EXPECT_EQ(sum[4], tiny + tiny);
  EXPECT_EQ(sum[5], inf);
  EXPECT_TRUE(std::isnan(sum[6]));
  EXPECT_TRUE(std::isnan(sum[7]));
}

TEST(DeviceSumOfHalves, EveryValueIsWidenedAndRoundedAsOnTheHost) {
  OneGpu gpu;
  constexpr std::size_t kAll = 65536;
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const int infinity = dtype == DType::float16 ? 0x7c00 : 0x7f80;
    std::vector<std::uint16_t> a(kAll);
    std::vector<std::uint16_t> b(kAll);
    std::mt19937 random(11);
    for (std::size_t i = 0; i < kAll; ++i) {
      a[i] = static_cast<std::uint16_t>(i);
      b[i] = static_cast<std::uint16_t>(random());
      if ((b[i] & 0x7fff) >= infinity) b[i] = 0;
    }
    DeviceArray<std::uint16_t> thereA(gpu, a);
    DeviceArray<std::uint16_t> thereB(gpu, b);
    const SumTask task{{thereA.data(), thereB.data()}, {thereB.data()}, kAll};
    sum(gpu.stream, gpu.ring, dtype, {&task, 1});
    std::vector<std::uint16_t> expected(kAll);
    void* const out[] = {expected.data()};
    const void* const in[] = {a.data(), b.data()};
    reduceMany(out, in, kAll, dtype, ReduceOp::sum);
    const std::vector<std::uint16_t> sum = thereB.read();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kAll; ++i) {
      const bool bothNan = (sum[i] & 0x7fff) > infinity && (expected[i] & 0x7fff) > infinity;
      if (sum[i] != expected[i] && !bothNan) ++wrong;
    }
    EXPECT_EQ(wrong, 0u) << nameOf(dtype);
  }
}

TEST(DeviceLists, OneThatIsLargerThanTheRing) {
  OneGpu gpu;
  constexpr std::size_t kArrays = 20000;
  DeviceArray<std::uint8_t> from(gpu, Bytes(kArrays, 7));
  DeviceArray<std::uint8_t> to(gpu, Bytes(kArrays, 0));
  std::vector<SumTask> tasks(kArrays);
  for (std::size_t i = 0; i < kArrays; ++i) tasks[i] = {{from.data() + i}, {to.data() + i}, 1};
  sum(gpu.stream, gpu.ring, DType::uint8, tasks);
  EXPECT_EQ(to.read(), Bytes(kArrays, 7));
}

TEST(DeviceLists, ASumOfNoArraysIsRefused) {
  OneGpu gpu;
  DeviceArray<float> to(gpu, {1});
  const SumTask task{{}, {to.data()}, 1};
  const std::string message = messageOf(ErrorCode::invalidArgument, [&] {
    sum(gpu.stream, gpu.ring, DType::float32, {&task, 1});
  });
  EXPECT_NE(message.find("no arrays"), std::string::npos) << message;
}

TEST(DeviceCopy, CopiesAllBytesWithAnyNumberOfBlocks) {
  OneGpu gpu;
  for (const std::size_t bytes : {16u, 48u, 16384u, 16400u, 200000u}) {
    const Bytes values = randomValues(DType::uint8, bytes, 5);
    DeviceArray<std::uint8_t> from(gpu, values);
    for (const unsigned blocks : {0u, 1u, 3u, 1000u}) {
      DeviceArray<std::uint8_t> to(gpu, Bytes(bytes));
      copy(gpu.stream, to.data(), from.data(), bytes, blocks);
      EXPECT_TRUE(sameBits(to.read(), values)) << bytes << " bytes, " << blocks << " blocks";
    }
  }
}

TEST(DeviceCopy, RefusesWhatIsNotMultiplesOfSixteenBytes) {
  OneGpu gpu;
  DeviceArray<std::uint8_t> a(gpu, Bytes(64));
  DeviceArray<std::uint8_t> b(gpu, Bytes(64));
  for (const auto& [to, from, bytes] :
       {std::tuple(a.data(), b.data(), 17), std::tuple(a.data() + 4, b.data(), 16),
        std::tuple(a.data(), b.data() + 8, 16)}) {
    messageOf(ErrorCode::invalidArgument, [&, to = to, from = from, bytes = bytes] {
      copy(gpu.stream, to, from, static_cast<std::size_t>(bytes));
    });
  }
}

TEST(DeviceChase, GoesRoundTheList) {
  OneGpu gpu;
  constexpr std::size_t kNodes = 64;
  constexpr std::size_t kStride = 128;
  DeviceArray<std::uint8_t> list(gpu, Bytes(kNodes * kStride));
  Bytes image(kNodes * kStride);
  chaseList(image.data(), list.data(), kNodes, kStride);
  gpu.stream.copy(list.data(), image.data(), image.size());
  const PinnedMemory result(2 * sizeof(std::uint64_t));
  auto* const words = static_cast<std::uint64_t*>(result.data());
  words[0] = 0;
  for (const std::uint32_t steps : {0u, 1u, 63u, 64u, 1000u}) {
    for (const int each : {0, gpu.device.multiprocessors() - 1}) {
      words[1] = 0;
      chase(gpu.stream, list.data(), steps, each, words);
      gpu.stream.synchronize();
      EXPECT_EQ(words[1], addressOf(list.data() + steps % kNodes * kStride)) << steps << " steps";
    }
  }
  EXPECT_GT(words[0], 0u);
}

TEST(DeviceSpin, HoldsTheStreamUntilTheFlagIsSet) {
  OneGpu gpu;
  const PinnedMemory flag = PinnedMemory::zeroed(sizeof(std::uint32_t));
  auto* const word = static_cast<std::uint32_t*>(flag.data());
  DeviceArray<float> array(gpu, {1, 2, 3});
  Event after(gpu.device, false);
  spin(gpu.stream, word, 60);
  after.record(gpu.stream);
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(after.done());
    std::this_thread::yield();
  }
  std::atomic_ref(*word).store(1, std::memory_order_release);
  after.synchronize();
  EXPECT_EQ(array.read(), std::vector<float>({1, 2, 3}));
}

TEST(DeviceSpin, GivesUp) {
  OneGpu gpu;
  const PinnedMemory flag = PinnedMemory::zeroed(sizeof(std::uint32_t));
  spin(gpu.stream, static_cast<const std::uint32_t*>(flag.data()), 0.002);
  gpu.stream.synchronize();
}

class DeviceWeightedSum : public testing::TestWithParam<DType> {};

TEST_P(DeviceWeightedSum, IsTheHosts) {
  const DType dtype = GetParam();
  OneGpu gpu;
  const std::size_t size = sizeOf(dtype);
  const std::size_t tile = 16384 / size;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, tile - 1, tile, 3 * tile + 7}) {
    for (const std::size_t sources : {1, 2, 5}) {
      // The offset, in elements, takes the arrays off multiples of 16 bytes.
      for (const auto& [inPlace, offset] :
           {std::pair{false, 0u}, {true, 0u}, {false, 1u}, {true, 1u}}) {
        std::vector<reference::Bytes> values;
        std::vector<DeviceArray<std::uint8_t>> there;
        std::vector<const void*> here;
        std::vector<const void*> from;
        std::vector<double> weights;
        for (std::size_t s = 0; s < sources; ++s) {
          const auto seed = static_cast<std::uint32_t>(s);
          values.push_back(reference::randomArray(count, dtype, seed));
          there.emplace_back(gpu, values.back(), offset * size);
          from.push_back(there.back().data());
          weights.push_back(0.7 * static_cast<double>(s) - 1.1);
        }
        for (const reference::Bytes& array : values) here.push_back(array.data());
        if (!inPlace) there.emplace_back(gpu, reference::Bytes(count * size), offset * size);
        weightedSum(gpu.stream, gpu.ring, dtype, there.back().data(), from, weights, count);
        reference::Bytes want(count * size);
        if (count > 0) weightedSum(want.data(), here, weights, count, dtype);
        const reference::Bytes got = there.back().read();
        EXPECT_EQ(reference::difference(got.data(), want.data(), count, dtype), "")
            << count << " elements of " << sources << " arrays, offset " << offset;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceWeightedSum,
                         testing::Values(DType::float16, DType::bfloat16, DType::float32,
                                         DType::float64),
                         [](const auto& info) { return nameOf(info.param); });

TEST(DeviceWeightedSumOfIntegers, IsRefused) {
  OneGpu gpu;
  const double weight = 1;
  const void* const from[] = {nullptr};
  EXPECT_THROW(weightedSum(gpu.stream, gpu.ring, DType::int32, nullptr, from, {&weight, 1}, 1),
               Error);
}

}  // namespace
}  // namespace gradlink::cuda
