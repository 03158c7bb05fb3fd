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
  Kernels& kernels = Kernels::of(gpu.device);
  for (const std::size_t count : {0, 1, 255, 4097}) {
    for (const std::size_t sources : {1, 2, 5}) {
      for (const bool inPlace : {false, true}) {
        const std::size_t bytes = count * sizeOf(dtype);
        std::vector<reference::Bytes> values;
        std::vector<DeviceMemory> there;
        std::vector<const void*> here;
        std::vector<const void*> from;
        std::vector<double> weights;
        for (std::size_t s = 0; s < sources; ++s) {
          values.push_back(reference::randomArray(count, dtype, static_cast<std::uint32_t>(s)));
          there.emplace_back(gpu.device, std::max<std::size_t>(bytes, 8));
          gpu.stream.copy(there.back().data(), values.back().data(), bytes);
          from.push_back(there.back().data());
          weights.push_back(0.7 * static_cast<double>(s) - 1.1);
        }
        for (const auto& array : values) here.push_back(array.data());
        DeviceMemory own(gpu.device, std::max<std::size_t>(bytes, 8));
        void* to = inPlace ? there.back().data() : own.data();
        kernels.weightedSum(gpu.stream, gpu.ring, dtype, to, from, weights, count);
        reference::Bytes got(bytes);
        gpu.stream.copy(got.data(), to, bytes);
        gpu.stream.synchronize();
        reference::Bytes want(bytes);
        if (count > 0) weightedSum(want.data(), here, weights, count, dtype);
        EXPECT_EQ(reference::difference(got.data(), want.data(), count, dtype), "")
            << count << " elements of " << sources << " arrays";
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
  EXPECT_THROW(Kernels::of(gpu.device)
                   .weightedSum(gpu.stream, gpu.ring, DType::int32, nullptr, from, {&weight, 1}, 1),
               Error);
}

}  // namespace
}  // namespace gradlink::cuda
