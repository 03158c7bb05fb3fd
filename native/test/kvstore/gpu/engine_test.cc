// Who does what when in a store on GPUs: the engine alone, over a site that only writes down what
// it is asked to begin.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "kvstore/gpu/gpu_engine.h"
#include "test/kvstore/support.h"

namespace gradlink::test {
namespace {

/// Rounds of at most 1000 bytes, the first ones of `first`. What is begun is done when the gate is
/// open.
class ScriptedSite final : public GpuSite {
 public:
  class Flight final : public InFlight {
   public:
    Flight(ScriptedSite& site, bool first) : site_(site), first_(first) {}
    Progress advance() override {
      if (site_.failing) throw Error(ErrorCode::system, "failed").stillUsable();
      if (site_.open_) return Progress::done;
      ++site_.looks;
      return first_ && site_.firstStays ? Progress::onDevice : site_.waits.load();
    }

   private:
    ScriptedSite& site_;
    const bool first_;
  };

  bool blocksKey(const GpuUnit& unit) const override { return unit.key().name == "blocking"; }
  std::size_t roundBytes() const override { return 1000; }
  std::size_t firstRoundBytes() const override { return first; }
  void begin(std::vector<std::unique_ptr<GpuUnit>>& units, InFlightList& inFlight) override {
    std::string round;
    bool first = false;
    for (const auto& unit : units) {
      round += (round.empty() ? "" : " ") + unit->key().name;
      if (unit->items.size() > 1) round += "x" + std::to_string(unit->items.size());
    }
    {
      const std::lock_guard lock(mutex_);
      first = rounds_.empty();
      rounds_.push_back(round);
    }
    changed_.notify_all();
    if (refusing) throw Error(ErrorCode::outOfMemory, "no room").stillUsable();
    inFlight.push_back(std::make_unique<Flight>(*this, first));
    inFlight.back()->units = std::move(units);
  }
  bool joinsPulls() const override { return joining; }
  bool quiesce() noexcept override {
    ++quiesced;
    return true;
  }

  /// What was begun, once it is at least so many rounds.
  std::vector<std::string> rounds(std::size_t atLeast) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return rounds_.size() >= atLeast; });
    return rounds_;
  }
  void open(GpuEngine& engine) {
    open_ = true;
    engine.wake();
  }

  std::atomic<InFlight::Progress> waits{InFlight::Progress::onDevice};
  std::atomic<bool> firstStays{false};
  std::atomic<int> looks{0};
  std::atomic<std::size_t> first{1000};
  std::atomic<bool> refusing{false};
  std::atomic<bool> failing{false};
  std::atomic<bool> joining{true};
  std::atomic<int> quiesced{0};

 private:
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> rounds_;
};

class GpuEngineTest : public testing::Test {
 protected:
  /// `floats`: each operation counts them once for each array and once for the value.
  GpuKey& key(const std::string& name, std::size_t floats = 1) {
    auto made = std::make_unique<GpuKey>();
    made->name = name;
    made->dtype = DType::float32;
    made->count = floats;
    keys_.push_back(std::move(made));
    return *keys_.back();
  }
  static GpuRequest request(GpuKey& key, OperationKind kind, const std::shared_ptr<Ticket>& ticket,
                            std::int32_t priority = 0) {
    auto operations = std::make_shared<GpuOperations>(1);
    operations->front().key = &key;
    operations->front().kind = kind;
    return {std::move(operations), 0, 1, priority, ticket};
  }
  static GpuRequest push(GpuKey& key, const std::shared_ptr<Ticket>& ticket, int priority = 0) {
    return request(key, OperationKind::push, ticket, priority);
  }
  static GpuRequest pull(GpuKey& key, const std::shared_ptr<Ticket>& ticket, int priority = 0) {
    return request(key, OperationKind::pull, ticket, priority);
  }
  /// Of 600 bytes each, of keys of their own.
  std::vector<GpuRequest> fortyPushes(const std::shared_ptr<Ticket>& ticket) {
    std::vector<GpuRequest> requests;
    for (int i = 0; i < 40; ++i) requests.push_back(push(key(std::to_string(i), 150), ticket));
    return requests;
  }
  template <class... Requests>
  void submit(Requests... made) {
    engine.submit({std::move(made)...});
  }

  /// What is begun until all of `ticket` is done.
  std::vector<std::string> roundsOf(std::size_t rounds) {
    site.open(engine);
    waiter.wait();
    return site.rounds(rounds);
  }

  std::vector<std::unique_ptr<GpuKey>> keys_;
  GpuKey& a = key("a");
  GpuKey& b = key("b");
  Waiter waiter;
  const std::shared_ptr<Ticket> ticket = waiter.ticket();
  ScriptedSite site;
  std::vector<std::string> admitted;
  GpuEngine engine{site, [this](GpuItem& item) { admitted.push_back(item.key().name); }};
};

TEST_F(GpuEngineTest, OneRoundOfAllKeysMostUrgentFirst) {
  GpuKey& c = key("c");
  submit(push(a, ticket, 1), push(b, ticket, 3), push(c, ticket, 3));
  EXPECT_EQ(roundsOf(1), std::vector<std::string>{"b c a"});
  EXPECT_EQ(admitted, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(GpuEngineTest, PullsRideAndPushesFollow) {
  submit(push(a, ticket), pull(a, ticket), pull(a, ticket), push(a, ticket), pull(a, ticket),
         push(b, ticket));
  EXPECT_EQ(roundsOf(2), (std::vector<std::string>{"ax3 b", "ax2"}));
}

TEST_F(GpuEngineTest, PullsRideWithPullsAloneWhereTheSiteWantsIt) {
  site.joining = false;
  submit(push(a, ticket), pull(a, ticket), pull(a, ticket), push(a, ticket), pull(a, ticket),
         push(b, ticket));
  EXPECT_EQ(roundsOf(4), (std::vector<std::string>{"a b", "ax2", "a", "a"}));
}

TEST_F(GpuEngineTest, AnUrgentItemPullsAlongWhatIsBeforeIt) {
  submit(push(b, ticket, 1), push(a, ticket, 0), push(a, ticket, 2));
  EXPECT_EQ(roundsOf(2), (std::vector<std::string>{"a b", "a"}));
}

TEST_F(GpuEngineTest, RoundsAreCutAndOnlySomeAreUnderWay) {
  engine.submit(fortyPushes(ticket));
  // Two a round, and eight rounds' bytes at a time.
  EXPECT_EQ(site.rounds(7).size(), 7u);
  const std::vector<std::string> rounds = roundsOf(20);
  EXPECT_EQ(rounds.size(), 20u);
  EXPECT_EQ(rounds.front(), "0 1");
  EXPECT_EQ(rounds.back(), "38 39");
}

TEST_F(GpuEngineTest, WhatWaitsForOtherWorkersHoldsNothingBack) {
  for (const bool firstStays : {false, true}) {
    ScriptedSite own;
    own.firstStays = firstStays;
    GpuEngine busy{own, [](GpuItem&) {}};
    Waiter all;
    busy.submit(fortyPushes(all.ticket()));
    EXPECT_EQ(own.rounds(7).size(), 7u);
    // It has looked at them for so long that it would sleep; nobody wakes it.
    while (own.looks < 7000) std::this_thread::yield();
    own.waits = InFlight::Progress::elsewhere;
    EXPECT_EQ(own.rounds(20).back(), "38 39");
    own.open(busy);
    all.wait();
  }
}

TEST_F(GpuEngineTest, SmallRoundsComeFirstAndTheRestWaitsForItsPulls) {
  site.first = 600;
  std::vector<GpuRequest> pushes;
  std::vector<GpuRequest> pulls;
  for (int i = 0; i < 12; ++i) {
    GpuKey& one = key(std::to_string(i), 150);
    pushes.push_back(push(one, ticket));
    pulls.push_back(pull(one, ticket));
  }
  engine.submit(std::move(pushes));
  // 600 bytes each, and no more than four times that is under way when a round begins.
  site.rounds(3);
  engine.submit(std::move(pulls));
  std::promise<void> admitted;
  engine.apply([&] { admitted.set_value(); });
  admitted.get_future().wait();
  const std::vector<std::string> rounds = roundsOf(7);
  EXPECT_EQ(std::vector(rounds.begin(), rounds.begin() + 3),
            (std::vector<std::string>{"0", "1 2", "3 4"}));
  EXPECT_TRUE(rounds[3].starts_with("5x2")) << rounds[3];
}

TEST_F(GpuEngineTest, ASmallRoundBeginsBeforeTheRestOfItsCallIsAdmitted) {
  site.first = 600;
  submit(push(key("a", 150), ticket), push(key("urgent"), ticket, 1));
  EXPECT_EQ(roundsOf(2), (std::vector<std::string>{"a", "urgent"}));
}

TEST_F(GpuEngineTest, ARequestMayComeAgainWhileItIsUnderWay) {
  Waiter first;
  Waiter second;
  GpuRequest request = push(key("a"), first.ticket());
  engine.submit({request, request});
  site.rounds(1);
  request.ticket = second.ticket();
  engine.submit({request});
  site.open(engine);
  first.wait();
  second.wait();
  EXPECT_EQ(site.rounds(3), (std::vector<std::string>{"a", "a", "a"}));
}

TEST_F(GpuEngineTest, ABlockedKeyWaitsAndOthersDoNot) {
  Waiter first;
  Waiter second;
  GpuKey& blocking = key("blocking");
  GpuKey& other = key("other");
  const auto one = first.ticket();
  submit(push(blocking, one), push(blocking, one));
  EXPECT_EQ(site.rounds(1), std::vector<std::string>{"blocking"});
  submit(push(other, second.ticket()));
  EXPECT_EQ(site.rounds(2), (std::vector<std::string>{"blocking", "other"}));
  site.open(engine);
  first.wait();
  second.wait();
  EXPECT_EQ(site.rounds(3), (std::vector<std::string>{"blocking", "other", "blocking"}));
}

TEST_F(GpuEngineTest, FencesStandBetweenBeforeAndAfter) {
  std::mutex mutex;
  std::vector<std::string> order;
  const auto noting = [&](const char* name, const std::shared_ptr<Ticket>& then = nullptr) {
    return std::make_shared<Ticket>([&, name, then](std::exception_ptr) {
      {
        const std::lock_guard lock(mutex);
        order.emplace_back(name);
      }
      if (then) then->finish(nullptr);
    });
  };
  ticket->expect();
  submit(push(a, noting("before")));
  engine.fence(
      [&] {
        const std::lock_guard lock(mutex);
        order.emplace_back("fence");
      },
      noting("fenced"));
  submit(push(a, noting("after", ticket)));
  EXPECT_EQ(site.rounds(1).size(), 1u);
  site.open(engine);
  waiter.wait();
  EXPECT_EQ(order, (std::vector<std::string>{"before", "fence", "fenced", "after"}));
}

TEST_F(GpuEngineTest, SettingsTakeEffectInOrder) {
  submit(push(a, ticket));
  engine.apply([this] { admitted.emplace_back("setting"); });
  Waiter other;
  submit(push(b, other.ticket()));
  site.open(engine);
  waiter.wait();
  other.wait();
  EXPECT_EQ(admitted, (std::vector<std::string>{"a", "setting", "b"}));
}

TEST_F(GpuEngineTest, WhatCannotBeginOrFailsOnTheWayEndsAlone) {
  GpuKey& blocking = key("blocking");
  for (std::atomic<bool>* fault : {&site.refusing, &site.failing}) {
    *fault = true;
    Waiter failing;
    submit(push(blocking, failing.ticket()));
    EXPECT_THROW(failing.wait(), Error);
    EXPECT_GT(site.quiesced, 0);
    site.quiesced = 0;
    *fault = false;
    site.open(engine);
    Waiter next;
    submit(push(blocking, next.ticket()));
    next.wait();
  }
}

TEST_F(GpuEngineTest, AFailureOfOneOperationIsNotOthers) {
  GpuEngine picky(site, [](GpuItem& item) {
    if (item.key().name == "wrong") {
      item.error =
          std::make_exception_ptr(Error(ErrorCode::invalidArgument, "wrong").stillUsable());
    }
  });
  Waiter wrong;
  Waiter right;
  site.open(picky);
  picky.submit({push(key("wrong"), wrong.ticket()), push(key("right"), right.ticket())});
  EXPECT_THROW(wrong.wait(), Error);
  right.wait();
  EXPECT_EQ(site.rounds(1), std::vector<std::string>{"right"});
}

TEST_F(GpuEngineTest, StopDropsWhatIsQueued) {
  GpuKey& a = key("blocking");
  const auto never = std::make_shared<Ticket>([](std::exception_ptr) { ADD_FAILURE(); });
  submit(push(a, never), push(a, never));
  site.rounds(1);
  engine.stop();
  engine.stop();
  EXPECT_EQ(site.rounds(1).size(), 1u);
  EXPECT_GT(site.quiesced, 0);
  submit(push(a, never));
}

}  // namespace
}  // namespace gradlink::test
