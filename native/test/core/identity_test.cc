#include "core/kernels/identity.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/kernels/reduce_kernels.h"

namespace gradlink {
namespace {

// Of every type that the kernels know, on values with all kinds of bits.
TEST(Identity, ChangesNoOtherValue) {
  constexpr std::size_t kCount = 256;
  for (const DType dtype : kHostDTypes) {
    const std::size_t width = sizeOf(dtype);
    std::vector<unsigned char> values(kCount * width);
    // The high byte goes up by one from value to value and skips the NaNs of float16.
    for (std::size_t i = 0; i < kCount; ++i) {
      const bool isNan = dtype == DType::float16 && (i & 0x7c) == 0x7c;
      values[(i + 1) * width - 1] = static_cast<unsigned char>(isNan ? 0 : i);
    }
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
      std::vector<unsigned char> identity(values.size());
      fillIdentity(identity.data(), kCount, dtype, op);
      std::vector<unsigned char> got(values.size());
      const void* const src[] = {values.data(), identity.data()};
      void* const dst[] = {got.data()};
      reduceMany(dst, src, kCount, dtype, op);
      // A negative zero plus 0 is 0.
      if (op == ReduceOp::sum && isFloat(dtype)) {
        for (std::size_t i = 0; i < kCount; ++i) {
          if (values[(i + 1) * width - 1] == 0x80) got[(i + 1) * width - 1] = 0x80;
        }
      }
      EXPECT_EQ(got, values) << nameOf(dtype) << " " << nameOf(op);
    }
  }
}

}  // namespace
}  // namespace gradlink
