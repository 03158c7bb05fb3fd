// Entries and fences: what is carried out at once, what is held, and in which order it goes on.
#include "kvstore/base/ordered_queue.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace gradlink {
namespace {

struct Letter {
  bool isFence() const { return name == '|'; }

  char name;
};

/// A queue whose entries are letters, and the letters that it has let through.
class OrderedQueueTest : public testing::Test {
 protected:
  void add(const std::string& letters) {
    for (const char letter : letters) {
      queue_.add({letter}, [this](Letter&& one) { through_ += one.name; });
    }
  }
  void endFence() {
    queue_.endFence([this](Letter&& one) { through_ += one.name; });
  }

  OrderedQueue<Letter> queue_;
  std::string through_;
};

TEST_F(OrderedQueueTest, WithoutAFenceNothingIsHeld) {
  add("abc");
  EXPECT_EQ(through_, "abc");
  EXPECT_FALSE(queue_.holds());
  EXPECT_FALSE(queue_.fenceWaits());
}

TEST_F(OrderedQueueTest, AFenceHoldsBackWhatComesAfterIt) {
  add("a|bc");
  EXPECT_EQ(through_, "a");
  EXPECT_TRUE(queue_.holds());
  EXPECT_TRUE(queue_.fenceWaits());

  EXPECT_EQ(queue_.beginFence().name, '|');
  EXPECT_FALSE(queue_.fenceWaits());
  add("d");  // while it is under way
  EXPECT_EQ(through_, "a");
  endFence();
  EXPECT_EQ(through_, "abcd");
  EXPECT_FALSE(queue_.holds());
}

TEST_F(OrderedQueueTest, TheNextFenceWaitsInItsTurn) {
  add("|a|b");
  queue_.beginFence();
  endFence();
  EXPECT_EQ(through_, "a");
  EXPECT_TRUE(queue_.fenceWaits());
  queue_.beginFence();
  endFence();
  EXPECT_EQ(through_, "ab");
}

TEST_F(OrderedQueueTest, TakesOutAllThatIsHeldTheFenceUnderWayFirst) {
  add("|ab|c");
  queue_.beginFence();
  std::string taken;
  for (const Letter& one : queue_.takeAll()) taken += one.name;
  EXPECT_EQ(taken, "|ab|c");
  EXPECT_FALSE(queue_.holds());
  EXPECT_FALSE(queue_.fenceWaits());
  add("d");
  EXPECT_EQ(through_, "d");
}

}  // namespace
}  // namespace gradlink
