// The keys of a store by number and by name.
#include "kvstore/key_table.h"

#include <memory>
#include <vector>

#include "test/thrown.h"

namespace gradlink {
namespace {

TEST(KeyTable, NumbersCountFromZeroAndKeysKeepTheirAddress) {
  KeyTable<std::string> table;
  EXPECT_TRUE(table.empty());
  std::vector<std::string*> keys;
  for (int i = 0; i < 100; ++i) {
    const std::string name = std::to_string(i);
    EXPECT_EQ(table.next(name), static_cast<KeyId>(i));
    keys.push_back(&table.add(name, std::make_unique<std::string>("key " + name)));
  }
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.all(), keys);
  EXPECT_EQ(&table.at(7), keys[7]);
  EXPECT_EQ(table.named("42"), keys[42]);
  EXPECT_EQ(*table.named("42"), "key 42");
}

TEST(KeyTable, TakenNamesAndMissingNumbersAreMisuse) {
  KeyTable<int> table;
  EXPECT_EQ(table.named("w"), nullptr);
  table.add("w", std::make_unique<int>(1));
  EXPECT_EQ(test::lacking(test::messageOf(ErrorCode::invalidArgument, [&] { table.next("w"); }),
                          {"key w"}),
            "");
  EXPECT_EQ(test::lacking(test::messageOf(ErrorCode::invalidArgument, [&] { table.at(1); }),
                          {"such key"}),
            "");
}

}  // namespace
}  // namespace gradlink
