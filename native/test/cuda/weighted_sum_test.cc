// Weighted sums on a device are the host's, bit for bit.
#include "core/error.h"
#include "core/kernels/reduce_kernels.h"
#include "test/device_support.h"
#include "test/reference.h"

namespace gradlink::cuda {
namespace {

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
