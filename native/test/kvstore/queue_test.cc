// Which key is next, while keys become more urgent, wait and go on; what fences hold back, and in
// which order it goes on. What the engines make of it is tested with them.
#include "kvstore/queue.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace gradlink {
namespace {

struct NamedKey {
  std::string name;
  KeyQueue<Operation> queue = {};
};

class KeyOrderTest : public testing::Test {
 protected:
  void join(NamedKey& key, std::int32_t priority) {
    Operation operation;
    operation.priority = priority;
    order_.join(key, std::move(operation));
  }
  /// The names of what is listed, soonest first; nothing is listed afterwards.
  std::string drain() {
    std::string names;
    while (NamedKey* const key = order_.soonest()) {
      order_.unlist(*key);
      names += key->name;
    }
    EXPECT_TRUE(order_.empty());
    return names;
  }

  NamedKey a_{"a"};
  NamedKey b_{"b"};
  NamedKey c_{"c"};
  KeyOrder<NamedKey> order_;
};

TEST_F(KeyOrderTest, KeysThatBecomeMoreUrgentManyTimesStayInOrder) {
  for (std::int32_t priority = 0; priority < 500; ++priority) {
    for (NamedKey* const key : {&a_, &b_, &c_}) join(*key, priority);
  }
  join(b_, 500);
  EXPECT_EQ(drain(), "bac");
}

TEST_F(KeyOrderTest, AKeyIsAsUrgentAsWhatIsLeftOfIt) {
  join(a_, 2);
  join(a_, 0);
  join(b_, 1);
  order_.unlist(a_);
  a_.queue.take();
  order_.list(a_);
  EXPECT_EQ(drain(), "ba");
}

TEST_F(KeyOrderTest, ABlockedKeyIsNextOnlyOnceItIsReleased) {
  join(a_, 0);
  join(b_, 0);
  order_.block(a_);
  join(a_, 7);
  EXPECT_EQ(order_.soonest(), &b_);
  order_.release(a_);
  EXPECT_EQ(drain(), "ab");
}

struct NumberedFence {
  int number;
};

/// A queue whose requests are letters, and the letters that it has let through; '|' is a fence.
class FenceQueueTest : public testing::Test {
 protected:
  void add(const std::string& letters) {
    for (const char letter : letters) {
      if (letter == '|') {
        queue_.add(queue_.fenceOf({++fences_}), through_);
      } else {
        queue_.add({letter}, through_);
      }
    }
  }

  FenceQueue<char, NumberedFence> queue_;
  int fences_ = 0;
  std::string letters_;
  std::function<void(char)> through_ = [this](char letter) { letters_ += letter; };
};

TEST_F(FenceQueueTest, TakesOutAllThatIsHeldTheFenceUnderWayFirst) {
  add("|ab|c");
  queue_.beginFence();
  std::string taken;
  for (const auto& one : queue_.takeAll()) taken += one.fence ? '|' : one.request;
  EXPECT_EQ(taken, "|ab|c");
  EXPECT_FALSE(queue_.holds());
  EXPECT_FALSE(queue_.fenceWaits());
  add("d");
  EXPECT_EQ(letters_, "d");
}

}  // namespace
}  // namespace gradlink
