// Sums of seven workers on seven servers, for every element type and every compression, against
// arithmetic in float64 and decoders written from their definition.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kvstore/protocol/protocol.h"
#include "test/kvstore/worker/support.h"
#include "test/reference.h"

namespace gradlink::test {
namespace {

constexpr int kMany = 7;
constexpr std::size_t kCount = 10'003;

DistJob sevenAndSeven() {
  DistJob job;
  job.workers = kMany;
  job.servers = kMany;
  job.bigArrayBound = 5000;
  return job;
}

void writeNumber(void* array, std::size_t i, DType dtype, double value) {
  switch (dtype) {
    case DType::int8:
      return reference::write(array, i, static_cast<std::int8_t>(value));
    case DType::uint8:
      return reference::write(array, i, static_cast<std::uint8_t>(value));
    case DType::int16:
      return reference::write(array, i, static_cast<std::int16_t>(value));
    case DType::int32:
      return reference::write(array, i, static_cast<std::int32_t>(value));
    case DType::uint32:
      return reference::write(array, i, static_cast<std::uint32_t>(value));
    case DType::int64:
      return reference::write(array, i, static_cast<std::int64_t>(value));
    case DType::uint64:
      return reference::write(array, i, static_cast<std::uint64_t>(value));
    case DType::float16:
      return reference::write(array, i, reference::narrow(value, 5));
    case DType::bfloat16:
      return reference::write(array, i, reference::narrow(value, 8));
    case DType::float32:
      return reference::write(array, i, static_cast<float>(value));
    case DType::float64:
      return reference::write(array, i, value);
    case DType::float8e4m3:
    case DType::float8e5m2:
      break;  // stores do not take them
  }
}

/// Whole numbers from 0 to 17: seven of them add up exactly in every type.
double contribution(int rank, int round, std::size_t i) {
  return static_cast<double>(
      (i * 7 + static_cast<std::size_t>(rank) * 5 + static_cast<std::size_t>(round) * 3) % 18);
}

class DistTypes : public testing::TestWithParam<DType> {};

TEST_P(DistTypes, SevenWorkersAndSevenServersSumExactly) {
  const DType dtype = GetParam();
  expectNone(runDist(sevenAndSeven(), [&](Store& store, int rank) {
    for (const std::size_t count : {std::size_t{77}, kCount}) {
      const std::size_t bytes = count * sizeOf(dtype);
      const KeyId key = store.define(std::to_string(count), dtype, count, 1);
      std::vector<std::uint8_t> in(bytes);
      std::vector<std::uint8_t> out(bytes);
      std::vector<std::uint8_t> expected(bytes);
      const auto run = [&](OperationKind kind) {
        Waiter waiter;
        Operation operation;
        operation.kind = kind;
        operation.key = key;
        operation.in = {in.data()};
        if (kind == OperationKind::pushPull) operation.out = {out.data()};
        operation.ticket = waiter.ticket();
        submitOne(store, std::move(operation));
        waiter.wait();
      };
      run(OperationKind::init);
      for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < count; ++i) {
          double sum = 0;
          for (int r = 0; r < kMany; ++r) sum += contribution(r, round, i);
          writeNumber(in.data(), i, dtype, contribution(rank, round, i));
          writeNumber(expected.data(), i, dtype, sum);
        }
        run(OperationKind::pushPull);
        ASSERT_EQ(out, expected) << "round " << round;
      }
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Types, DistTypes,
                         testing::Values(DType::int8, DType::uint8, DType::int32, DType::uint32,
                                         DType::int64, DType::uint64, DType::float16,
                                         DType::bfloat16, DType::float32, DType::float64),
                         [](const auto& info) { return std::string(nameOf(info.param)); });

/// What a worker's gradient means to the servers once it has been compressed, by the definitions;
/// `residual` is that worker's, of this element.
float decoded(const std::string& type, float threshold, float gradient, float& residual) {
  if (type == "2bit") {
    residual += gradient;
    if (residual >= threshold) {
      residual -= threshold;
      return threshold;
    }
    if (residual <= -threshold) {
      residual += threshold;
      return -threshold;
    }
    return 0;
  }
  if (type == "1bit") {
    residual += gradient;
    const float sign = residual > threshold ? 1.f : -1.f;
    residual -= sign;
    return sign;
  }
  const int exponentBits = type == "float16" ? 5 : 8;
  return static_cast<float>(
      reference::widen(reference::narrow(gradient, exponentBits), exponentBits));
}

float gradientOf(int rank, int device, int round, std::size_t i) {
  const auto seed = static_cast<double>(i * 31) + rank * 17 + device * 5 + round * 3;
  return static_cast<float>(std::sin(seed));
}

class DistCompression : public testing::TestWithParam<const char*> {};

TEST_P(DistCompression, TravelsCompressedAndMeansWhatItsDefinitionSays) {
  const std::string type = GetParam();
  constexpr float kThreshold = 0.375f;
  DistJob job = sevenAndSeven();
  job.devices = 2;
  expectNone(runDist(job, [&](Store& store, int rank) {
    store.setCompression(GradientCompression::create(type, kThreshold));
    const KeyId key = makeKey(store, "key", Floats(kCount));
    const KeyId whole = store.define("int", DType::int32, 100, 1);  // not compressed
    std::vector<Floats> residuals(kMany, Floats(kCount));
    for (int round = 0; round < 4; ++round) {
      Floats expected(kCount);
      std::vector<Floats> in(2, Floats(kCount));
      for (std::size_t i = 0; i < kCount; ++i) {
        for (int r = 0; r < kMany; ++r) {
          const float sum = gradientOf(r, 0, round, i) + gradientOf(r, 1, round, i);
          expected[i] += decoded(type, kThreshold, sum, residuals[static_cast<std::size_t>(r)][i]);
        }
        for (int device = 0; device < 2; ++device) {
          in[static_cast<std::size_t>(device)][i] = gradientOf(rank, device, round, i);
        }
      }
      std::uint64_t before = 0;
      for (const std::uint64_t bytes : store.report().bytesSent) before += bytes;
      std::vector<Floats> out(2, Floats(kCount));
      pushPull(store, key, in, out);
      ASSERT_EQ(out[0], expected) << "round " << round;
      ASSERT_EQ(out[1], expected);
      std::uint64_t sent = 0;
      for (const std::uint64_t bytes : store.report().bytesSent) sent += bytes;
      const std::size_t bits = type == "2bit" ? 2 : type == "1bit" ? 1 : 16;
      EXPECT_LT(sent - before, kCount * bits / 8 + kMany * (sizeof(dist::Header) + 8));
    }
    std::vector<std::int32_t> numbers(100, rank + 1);
    Waiter waiter;
    Operation made;
    made.kind = OperationKind::init;
    made.key = whole;
    made.in = {numbers.data()};
    made.ticket = waiter.ticket();
    submitOne(store, std::move(made));
    waiter.wait();
    Waiter second;
    Operation exchange;
    exchange.kind = OperationKind::pushPull;
    exchange.key = whole;
    exchange.in = {numbers.data()};
    exchange.out = {numbers.data()};
    exchange.ticket = second.ticket();
    submitOne(store, std::move(exchange));
    second.wait();
    EXPECT_EQ(numbers, std::vector<std::int32_t>(100, kMany * (kMany + 1) / 2));
  }));
}

INSTANTIATE_TEST_SUITE_P(Types, DistCompression,
                         testing::Values("2bit", "1bit", "float16", "bfloat16"),
                         [](const auto& info) {
                           return std::string(info.param).substr(0, 1) == "2"   ? "twoBit"
                                  : std::string(info.param).substr(0, 1) == "1" ? "oneBit"
                                                                                : info.param;
                         });

}  // namespace
}  // namespace gradlink::test
