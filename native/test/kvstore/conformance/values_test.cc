// What a push stores and a pull gives, in every store there is.
#include "test/kvstore/conformance/stores.h"

namespace gradlink::test {
namespace {

using enum OperationKind;
using Bytes = std::vector<std::uint8_t>;
using Halves = std::vector<std::uint16_t>;

STORES(StoreValues, true);
STORES(StoreValuesInOrder, maker.ordered());
STORES(StoreValuesOnTheHost, !maker.onGpus);
STORES(StoreValuesOnGpus, maker.onGpus);

TEST_P(StoreValues, AreTheSumOfEachPush) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    // Beside where servers cut keys, what is packed with others, and pieces.
    for (const std::size_t count : {0, 1, 63, 499, 500, 1024, 1025, 16'384, 16'385, 70'001}) {
      // Worker 0's value counts.
      const KeyId key =
          store.define(std::to_string(count), Floats(count, 5 + static_cast<float>(store.rank)));
      EXPECT_EQ(store.pulled(key, count), store.everywhere(Floats(count, 5))) << count;
      store.run({{push, key, ownOf(store, 0, count)}});
      EXPECT_EQ(store.pulled(key, count), sumsOf(store, 0, count)) << count;
      // A pull that rides along with its push, and one that comes after.
      std::vector<Floats> riding = store.everywhere(Floats(count, -1));
      store.run({{push, key, ownOf(store, 1, count)}, {pull, key, {}, &riding}});
      EXPECT_EQ(riding, sumsOf(store, 1, count)) << count;
      EXPECT_EQ(store.pulled(key, count), riding) << count;
      // On the caller's thread, where the store can.
      std::vector<Floats> both = ownOf(store, 2, count);
      store.begin({{pushPull, key, {}, &both}}, true).wait();
      EXPECT_EQ(both, sumsOf(store, 2, count)) << count;
    }
  });
}

TEST_P(StoreValuesInOrder, AreSummedInTheOrderOfDevicesAndOfWorkers) {
  const auto pushed = [](int device, std::size_t count) {
    Floats values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = 1e6F * std::sin(static_cast<float>(i + 7) * static_cast<float>(device + 1));
    }
    return values;
  };
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    for (const std::size_t count : {63, 5000, 70'001}) {
      const KeyId key = store.define(std::to_string(count), Floats(count));
      store.run({{push, key, store.own([&](int device) { return pushed(device, count); })}});
      Floats sum(count);
      for (int device = 0; device < static_cast<int>(store.arrays());) {
        Floats ofWorker(count);
        for (std::size_t i = 0; i < store.devices(); ++i) {
          const Floats one = pushed(device++, count);
          for (std::size_t at = 0; at < count; ++at) ofWorker[at] += one[at];
        }
        for (std::size_t at = 0; at < count; ++at) sum[at] += ofWorker[at];
      }
      EXPECT_EQ(store.pulled(key, count), store.everywhere(sum)) << count;
    }
  });
}

/// `count` small whole numbers, of which all devices' sum is exact in every type.
Bytes numbersOf(DType dtype, std::size_t count, const std::function<int(std::size_t)>& at) {
  Bytes bytes(count * sizeOf(dtype));
  for (std::size_t i = 0; i < count; ++i) reference::put(bytes.data(), i, dtype, at(i));
  return bytes;
}

TEST_P(StoreValues, OfEveryTypeAreSums) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    for (const DType dtype :
         {DType::int8, DType::uint8, DType::int32, DType::uint32, DType::int64, DType::uint64,
          DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      for (const std::size_t count : {77, 1003}) {
        const auto brought = [&](int device, int round) {
          return [=](std::size_t i) { return (static_cast<int>(7 * i) + 5 * device + round) % 6; };
        };
        const std::string name = nameOf(dtype) + std::to_string(count);
        const KeyId key = store.define(name, dtype, numbersOf(dtype, count, brought(0, 9)));
        for (int round = 0; round < 2; ++round) {
          std::vector<Bytes> both = store.own(
              [&](int device) { return numbersOf(dtype, count, brought(device, round)); });
          store.run<Bytes>({{.kind = pushPull, .key = key, .out = &both, .mixed = round == 1}});
          const Bytes sum = numbersOf(dtype, count, [&](std::size_t i) {
            int all = 0;
            for (const int one : store.all([&](int device) { return brought(device, round)(i); })) {
              all += one;
            }
            return all;
          });
          EXPECT_EQ(both, store.everywhere(sum)) << name << " in round " << round;
        }
      }
    }
  });
}

// Their results may bypass the caches; the first of each kind try both.
TEST_P(StoreValuesOnTheHost, AreTheSameInStoresThatOutgrowTheCaches) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    constexpr std::size_t kCount = 70'001;
    const auto valuesOf = [&](const char* name) {
      const KeyId key = store.define(name, Floats(kCount));
      std::vector<std::vector<Floats>> all;
      for (int round = 0; round < 12; ++round) {
        if (round == 6) store.store.setOptimizer(momentumOf(0.5F));
        std::vector<Floats> both = ownOf(store, round, kCount);
        store.run({{pushPull, key, {}, &both}});
        all.push_back(std::move(both));
        all.push_back(store.pulled(key, kCount));
      }
      store.store.setOptimizer(nullptr);
      return all;
    };
    const auto small = valuesOf("small");
    store.define("large", Floats(2 << 20));
    EXPECT_EQ(small, valuesOf("the same"));
  });
}

// One large value and many ones, which each half alone would lose; and the largest ones of both
// signs, of which two overflow.
TEST_P(StoreValuesOnTheHost, OfHalvesAreRoundedOnce) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const int all = static_cast<int>(store.arrays());
    constexpr std::size_t kRows = 205;
    constexpr std::size_t kRowLength = 5;
    constexpr std::size_t kCount = kRows * kRowLength;
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      const bool brain = dtype == DType::bfloat16;
      const auto halvesOf = [&](const Floats& values) {
        Halves halves(kCount);
        narrow(values.data(), halves.data(), kCount, dtype);
        return halves;
      };
      const float base = brain ? 256 : 2048;
      const float most = brain ? 0x1.FEp127F : 65504;
      const auto brought = [&](int device) {
        Floats values(kCount);
        const float sign = device < all / 2 ? 1.F : device < all / 2 * 2 ? -1.F : 0.F;
        for (std::size_t i = 0; i < kCount; ++i) {
          values[i] = i % 2 == 1 ? sign * most : device == 0 ? base : 1;
        }
        return halvesOf(values);
      };
      Floats sums(kCount);
      for (std::size_t i = 0; i < kCount; i += 2) sums[i] = base + static_cast<float>(all - 1);
      const std::vector<Halves> expected = store.everywhere(halvesOf(sums));
      // As rows from the last to the first, each in two parts: the large values come twice, which
      // overflows.
      std::vector<std::int64_t> rows(2 * kRows);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<std::int64_t>((rows.size() - 1 - i) / 2);
      }
      const auto asRows = [&](int device) {
        const Halves whole = brought(device);
        Halves parts;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          for (std::size_t j = 0; j < kRowLength; ++j) {
            const auto at = static_cast<std::size_t>(rows[i]) * kRowLength + j;
            parts.push_back(at % 2 == 1 || i % 2 == 0 ? whole[at] : std::uint16_t{0});
          }
        }
        return parts;
      };
      const auto pushed = [&](const char* name, bool ofRows = false) {
        const KeyId key =
            store.define(name + std::to_string(brain), dtype, Halves(kCount), kRowLength);
        StepOf<Halves> step{push, key, store.own(brought)};
        if (ofRows) {
          step.in = store.own(asRows);
          step.inRows = store.own([&](int) { return rows; });
        }
        store.run<Halves>({step});
        return store.pulled<Halves>(key, kCount);
      };
      EXPECT_EQ(pushed("assigned"), expected);
      if (store.maker.stepsRows()) {
        EXPECT_EQ(pushed("rows", true), expected);
        // Beside whole arrays of the first worker, whose large values come once.
        if (store.several()) {
          for (std::size_t i = 1; i < kCount; i += 2) {
            sums[i] = -most * static_cast<float>(store.devices());
          }
        }
        EXPECT_EQ(pushed("mixed", store.rank > 0), store.everywhere(halvesOf(sums)));
      }
      // What is stepped at a rate of 1 from 0 is the sum with the other sign.
      store.store.setOptimizer(optimizerOf("sgd", {{"learningRate", 1}}));
      std::vector<Halves> stepped = pushed("stepped");
      for (Halves& one : stepped) {
        for (std::size_t i = 0; i < kCount; i += 2) one[i] ^= 0x8000;
      }
      EXPECT_EQ(stepped, expected);
      store.store.setOptimizer(nullptr);
    }
  });
}

TEST_P(StoreValues, AreOfTheArraysThereAre) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    constexpr std::size_t kCount = 700;
    const auto workers = static_cast<float>(store.maker.workers);
    const KeyId key = store.define("a", Floats(kCount));
    const std::size_t last = store.devices() - 1;
    std::vector<Floats> one{Floats(kCount, 3)};
    store.run({{.kind = pushPull, .key = key, .out = &one, .devices = {last}}});
    EXPECT_EQ(one[0], Floats(kCount, 3 * workers));
    // More than one a device, as where a list names a key twice.
    std::vector<Floats> twice(2 * store.devices(), Floats(kCount, 1));
    store.run({{pushPull, key, {}, &twice}});
    for (const Floats& array : twice) EXPECT_EQ(array, Floats(kCount, 2 * store.arraysAsFloat()));
  });
}

TEST_P(StoreValuesOnGpus, ComeFromTheHostAndGoThereToo) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    for (const std::size_t count : {63, 5000}) {
      const KeyId key = store.define(std::to_string(count), Floats(count));
      std::vector<Floats> out = store.everywhere(Floats(count, -1));
      store.run({{.kind = push, .key = key, .in = ownOf(store, 0, count), .mixed = true},
                 {.kind = pull, .key = key, .out = &out, .mixed = true}});
      EXPECT_EQ(out, sumsOf(store, 0, count));
      std::vector<Floats> both = ownOf(store, 1, count);
      store.run({{.kind = pushPull, .key = key, .out = &both, .mixed = true}});
      EXPECT_EQ(both, sumsOf(store, 1, count));
    }
  });
}

TEST_P(StoreValuesOnGpus, OfOtherGpusAreRefused) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    Floats value(10);
    const KeyId key = store.define("a", value);
    Operation elsewhere{
        .key = key, .in = {value.data()}, .inGpus = {63}, .ticket = Waiter().ticket()};
    const std::string text =
        refusedBy(ErrorCode::invalidArgument, [&] { submitOne(store.store, elsewhere); });
    EXPECT_EQ(lacking(text, {"gpu:63"}), "") << text;
  });
}

TEST_P(StoreValues, ThatDoNotFitAreRefusedAndTheStoreGoesOn) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const auto refused = [](const std::function<void()>& body) {
      return refusedBy(ErrorCode::invalidArgument, body);
    };
    const KeyId key = store.define("a", Floats(4), 2);
    refused([&] { store.store.define("a", DType::float32, 4, 1); });
    refused([&] { store.store.define("b", DType::float32, 4, 3); });
    const std::vector<Floats> ones = store.everywhere(Floats(4, 1));
    refused([&] { store.run({{push, key + 1, ones}}); });
    refused([&] { store.run({{push, key}}); });
    std::vector<Floats> out = ones;
    for (const std::int64_t row : {-1, 2}) {
      const std::string text = refused(
          [&] { store.run({{.kind = rowSparsePull, .key = key, .out = &out, .rows = {row}}}); });
      EXPECT_EQ(lacking(text, {"key a", "2 rows"}), "") << text;
    }
    refused([&] { store.wait([&](auto ticket) { store.store.setLearningRate(1, ticket); }); });
    store.barrier();
    // Integers have no optimizer: that push's failure alone.
    const KeyId integers = store.define("integers", DType::int32, std::vector<std::int32_t>(4));
    store.store.setOptimizer(momentumOf(1));
    std::vector<Floats> both = ones;
    const std::string text = refused([&] { store.run({{pushPull, integers, {}, &both}}); });
    EXPECT_EQ(lacking(text, {"key integers", "int32"}), "") << text;
    store.run({{push, key, ones}});
    EXPECT_EQ(store.pulled(key, 4), store.everywhere(Floats(4, -store.arraysAsFloat())));
  });
}

}  // namespace
}  // namespace gradlink::test
