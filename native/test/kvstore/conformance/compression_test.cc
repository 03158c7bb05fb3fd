// Compressed gradients in every store that has them, by decoders written from their definition.
#include "test/kvstore/conformance/stores.h"

namespace gradlink::test {
namespace {

using enum OperationKind;

STORES(StoreCompression, maker.compresses());
STORES(StoreWithoutCompression, !maker.compresses());

constexpr float kThreshold = 0.375F;
constexpr std::size_t kCount = 9'001;

/// What a gradient means once it has been compressed; `residual` is what is kept of the element.
float decoded(const std::string& type, float gradient, float& residual) {
  if (type == "2bit") {
    residual += gradient;
    const float sent = residual >= kThreshold    ? kThreshold
                       : residual <= -kThreshold ? -kThreshold
                                                 : 0;
    residual -= sent;
    return sent;
  }
  if (type == "1bit") {
    residual += gradient;
    const float sent = residual > kThreshold ? 1.F : -1.F;
    residual -= sent;
    return sent;
  }
  const int exponentBits = type == "float16" ? 5 : 8;
  return static_cast<float>(
      reference::widen(reference::narrow(gradient, exponentBits), exponentBits));
}

/// Of few bits: a worker's sum is the same in any order.
Floats gradientOf(int device, int round) {
  Floats values = pushedBy(device, round, kCount);
  for (float& one : values) one /= 512;
  return values;
}

/// What is stored after each push: what each device sends that is compressed by itself, else what
/// each worker sends.
class Expected {
 public:
  Expected(const AnyStore& store, std::string type)
      : store_(store),
        type_(std::move(type)),
        perSender_(store.maker.way == StoreMaker::alone ? 1 : store.devices()),
        residuals_(store.arrays() / perSender_, Floats(kCount)) {}

  Floats after(int round) {
    Floats sum(kCount);
    int device = 0;
    for (Floats& residual : residuals_) {
      Floats sent(kCount);
      for (std::size_t i = 0; i < perSender_; ++i) {
        const Floats one = gradientOf(device++, round);
        for (std::size_t at = 0; at < kCount; ++at) sent[at] += one[at];
      }
      for (std::size_t at = 0; at < kCount; ++at) {
        sum[at] += decoded(type_, sent[at], residual[at]);
      }
    }
    return sum;
  }

 private:
  const AnyStore& store_;
  const std::string type_;
  const std::size_t perSender_;
  std::vector<Floats> residuals_;
};

TEST_P(StoreCompression, MeansWhatItsDefinitionSays) {
  for (const std::string type : {"2bit", "1bit", "float16", "bfloat16"}) {
    const bool feedsBack = type.ends_with("bit");
    // What leaves no process goes as it is or by its sign.
    if (!feedsBack && GetParam().way == StoreMaker::alone) continue;
    onEveryStore(GetParam(), [&](const AnyStore& store) {
      Expected expected(store, type);
      const KeyId key = store.define("w", Floats(kCount));
      const KeyId whole = store.define("int", DType::int32, std::vector<std::int32_t>(5, 9));
      store.store.setCompression(GradientCompression::create(type, kThreshold));
      for (int round = 0; round < 4; ++round) {
        std::vector<Floats> both = store.own([&](int device) { return gradientOf(device, round); });
        store.run({{.kind = pushPull, .key = key, .out = &both, .mixed = round == 2}});
        EXPECT_EQ(both, store.everywhere(expected.after(round))) << type << ", round " << round;
      }
      // An optimizer gets what the codes mean: weight += gradient.
      Floats value = store.pulled(key, kCount)[0];
      store.store.setOptimizer(optimizerOf("test"));
      store.run({{push, key, store.own([&](int device) { return gradientOf(device, 4); })}});
      const Floats step = expected.after(4);
      for (std::size_t i = 0; i < kCount; ++i) value[i] += step[i];
      EXPECT_EQ(store.pulled(key, kCount), store.everywhere(value)) << type;
      store.store.setOptimizer(nullptr);
      // Other types, and first values, are as they are.
      using Ints = std::vector<std::int32_t>;
      EXPECT_EQ(store.pulled<Ints>(whole, 5), store.everywhere(Ints(5, 9)));
      std::vector<Ints> ints = store.everywhere(Ints(5, 100));
      store.run<Ints>({{pushPull, whole, {}, &ints}});
      EXPECT_EQ(ints, store.everywhere(Ints(5, 100 * static_cast<std::int32_t>(store.arrays()))));
    });
  }
}

TEST_P(StoreCompression, IsSetOnceAndOfWholeArrays) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const auto compression = GradientCompression::create("2bit", kThreshold);
    store.store.setCompression(compression);
    refusedBy(ErrorCode::invalidArgument, [&] { store.store.setCompression(compression); });
    const KeyId key = store.define("w", Floats(6), 2);
    Step rows{push, key, store.everywhere(Floats(2, 1))};
    rows.inRows = store.everywhere(std::vector<std::int64_t>{1});
    const std::string text = refusedBy(ErrorCode::unsupported, [&] { store.run({rows}); });
    if (store.maker.readsRows()) {
      EXPECT_EQ(lacking(text, {"key w", "rows", "compress"}), "") << text;
    }
    std::vector<Floats> both = store.everywhere(Floats(6, 1));
    store.run({{pushPull, key, {}, &both}});
    const std::size_t senders =
        store.maker.way == StoreMaker::alone ? store.arrays() : store.arrays() / store.devices();
    const float sum = kThreshold * static_cast<float>(senders);
    EXPECT_EQ(both, store.everywhere(Floats(6, sum)));
  });
}

TEST_P(StoreWithoutCompression, ItIsRefused) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const std::string text = refusedBy(ErrorCode::unsupported, [&] {
      store.store.setCompression(GradientCompression::create("2bit", kThreshold));
    });
    EXPECT_EQ(lacking(text, {"compress"}), "") << text;
  });
}

}  // namespace
}  // namespace gradlink::test
