// What the local store does beside what every store does (stores_test.cc).
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "kvstore/local/local_store.h"
#include "test/kvstore/support.h"

namespace gradlink::test {
namespace {

TEST(LocalStore, SumsInDeviceOrderAtEverySize) {
  LocalStore store(Placement::host, 3);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1e6f, 1e6f);
  int name = 0;
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4097}, std::size_t{300'001}}) {
    std::vector<Floats> pushed(3, Floats(count));
    Floats expected(count);
    for (Floats& array : pushed) {
      for (float& x : array) x = uniform(random);
    }
    for (std::size_t i = 0; i < count; ++i) {
      expected[i] = (pushed[0][i] + pushed[1][i]) + pushed[2][i];
    }
    const KeyId key = makeKey(store, std::to_string(name++), Floats(count));
    // Both ways: a pull that rides along with its push, and one that comes after.
    std::vector<Floats> riding(2, Floats(count, -1));
    std::vector<Floats> later(1, Floats(count, -1));
    Waiter waiter;
    const auto ticket = waiter.ticket();
    std::vector<Operation> both;
    both.push_back(operation(OperationKind::push, key, pushed, ticket));
    both.push_back(operation(OperationKind::pull, key, riding, ticket));
    store.submit(std::move(both));
    waiter.wait();
    run(store, OperationKind::pull, key, later);
    EXPECT_EQ(riding[0], expected) << count;
    EXPECT_EQ(riding[1], expected) << count;
    EXPECT_EQ(later[0], expected) << count;
  }
}

TEST(LocalStore, HasNoCompressionWhereTheHostSums) {
  LocalStore store(Placement::host, 1);
  EXPECT_THROW(store.setCompression(GradientCompression(CompressionType::twoBit, 0.5)), Error);
}

}  // namespace
}  // namespace gradlink::test
