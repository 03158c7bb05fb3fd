// The store `device` on CPU devices beside a bare loop that does the same reads and writes key by
// key, in turns: device_store_benchmark [ROUNDS [BYTES]], with the first keys that have BYTES
// together. Each line is JSON: a way's median time of a batch, its processor time, and the median
// of the bare loop's time over its own in the same round.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "core/kernels/reduce_kernels.h"
#include "core/memory/huge_pages.h"
#include "core/thread_pool.h"
#include "kvstore/local/local_store.h"
#include "test/kvstore/support.h"

namespace gradlink {
namespace {

constexpr std::size_t kDevices = 4;
// Where malloc puts large arrays in their pages, and so JavaScript.
constexpr std::size_t kFirst = 4;

using Clock = std::chrono::steady_clock;

/// Weights of ResNet-152: convolutions of 50 bottlenecks and the last layer. Of these the first
/// that have no more than `most` together.
std::vector<std::size_t> resnetSizes(std::size_t most) {
  std::vector<std::size_t> sizes = {64 * 3 * 49};
  std::size_t in = 64;
  constexpr std::pair<std::size_t, std::size_t> kStages[] = {
      {256, 3}, {512, 8}, {1024, 36}, {2048, 3}};
  for (const auto& [out, units] : kStages) {
    const std::size_t inner = out / 4;
    for (std::size_t unit = 0; unit < units; ++unit) {
      sizes.insert(sizes.end(), {in * inner, inner * inner * 9, inner * out});
      if (unit == 0) sizes.push_back(in * out);
      in = out;
    }
  }
  sizes.push_back(1000 * in);
  std::size_t kept = 0;
  for (std::size_t sum = 0; kept < sizes.size(); ++kept) {
    sum += sizes[kept];
    if (sum > most) break;
  }
  sizes.resize(kept);
  return sizes;
}

/// The arrays of all keys in one mapping.
class Arrays {
 public:
  explicit Arrays(const std::vector<std::size_t>& sizes) {
    std::size_t floats = kFirst;
    for (const std::size_t size : sizes) {
      begins_.push_back(floats);
      floats += (size + 15) / 16 * 16;
    }
    memory_.reset(static_cast<float*>(std::aligned_alloc(kHugePageBytes, floats * sizeof(float))));
    if (!memory_) std::abort();
    adviseHugePages(memory_.get(), floats * sizeof(float));
    // Not zero, whose lines some processors write faster.
    std::fill_n(memory_.get(), floats, 1.0F);
  }
  float* operator[](std::size_t key) { return memory_.get() + begins_[key]; }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::vector<std::size_t> begins_;
  std::unique_ptr<float, Free> memory_;
};

struct Data {
  std::vector<std::size_t> sizes;
  std::vector<Arrays> gradients = make();
  std::vector<Arrays> weights = make();
  Arrays values{sizes};

  std::vector<const void*> in(std::size_t key) {
    return {gradients[0][key], gradients[1][key], gradients[2][key], gradients[3][key]};
  }
  std::vector<void*> out(std::size_t key) {
    return {weights[0][key], weights[1][key], weights[2][key], weights[3][key]};
  }

 private:
  std::vector<Arrays> make() {
    std::vector<Arrays> arrays;
    for (std::size_t device = 0; device < kDevices; ++device) arrays.emplace_back(sizes);
    return arrays;
  }
};

/// Each key in one call of all threads, a share each.
void bareBatch(Data& data) {
  ThreadPool& pool = ThreadPool::shared();
  const auto threads = static_cast<std::size_t>(pool.width());
  for (std::size_t key = data.sizes.size(); key-- > 0;) {
    const std::size_t share = (data.sizes[key] / threads + 15) / 16 * 16;
    pool.parallel(threads, [&](std::size_t thread) {
      const std::size_t first = std::min(thread * share, data.sizes[key]);
      const std::size_t count = std::min(share, data.sizes[key] - first);
      std::vector<const void*> in;
      std::vector<void*> out;
      for (std::size_t device = 0; device < kDevices; ++device) {
        in.push_back(data.gradients[device][key] + first);
        out.push_back(data.weights[device][key] + first);
      }
      out.push_back(data.values[key] + first);
      reduceMany(out, in, count, DType::float32, ReduceOp::sum, true);
    });
  }
}

Operation operationOf(Data& data, OperationKind kind, std::size_t key,
                      const std::shared_ptr<Ticket>& ticket) {
  Operation made{.kind = kind,
                 .key = static_cast<KeyId>(key),
                 .priority = static_cast<std::int32_t>(key),
                 .ticket = ticket};
  if (kind != OperationKind::pull) made.in = data.in(key);
  if (kind != OperationKind::push) made.out = data.out(key);
  return made;
}

/// As `measure` does: a call for each push, then a call for each pull.
void callsBatch(Store& store, Data& data) {
  std::vector<test::Waiter> waiters(2 * data.sizes.size());
  std::size_t next = 0;
  for (const OperationKind kind : {OperationKind::push, OperationKind::pull}) {
    for (std::size_t key = 0; key < data.sizes.size(); ++key) {
      test::submitOne(store, operationOf(data, kind, key, waiters[next++].ticket()));
    }
  }
  for (test::Waiter& waiter : waiters) waiter.wait();
}

/// All keys in one call.
void togetherBatch(Store& store, Data& data) {
  test::waitFor([&](const auto& ticket) {
    std::vector<Operation> all;
    for (std::size_t key = 0; key < data.sizes.size(); ++key) {
      all.push_back(operationOf(data, OperationKind::pushPull, key, ticket));
    }
    store.submit(std::move(all));
  });
}

double processorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Way {
  std::string name;
  std::function<void()> batch;
  std::vector<double> seconds;
  std::vector<double> processor;
};

void measure(Way& way) {
  const double before = processorSeconds();
  const auto start = Clock::now();
  way.batch();
  way.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  way.processor.push_back(processorSeconds() - before);
}

std::vector<double> quotients(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> made;
  for (std::size_t i = 0; i < a.size(); ++i) made.push_back(a[i] / b[i]);
  return made;
}

void run(int rounds, std::size_t bytes) {
  Data data{resnetSizes(bytes / sizeof(float))};
  LocalStore store(Placement::devices, kDevices);
  for (std::size_t key = 0; key < data.sizes.size(); ++key) {
    store.define(std::to_string(key), DType::float32, data.sizes[key], data.sizes[key]);
  }
  std::vector<Way> ways;
  ways.push_back({"bare loop", [&] { bareBatch(data); }, {}, {}});
  ways.push_back({"push, then pull", [&] { callsBatch(store, data); }, {}, {}});
  ways.push_back({"pushPull in one call", [&] { togetherBatch(store, data); }, {}, {}});
  for (Way& way : ways) way.batch();
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways) measure(way);
  }
  for (const Way& way : ways) {
    std::printf(
        R"({"way":"%s","seconds":%.6f,"processor":%.6f,"bareOverOwn":%.3f,"byProcessor":%.3f})"
        "\n",
        way.name.c_str(), median(way.seconds), median(way.processor),
        median(quotients(ways[0].seconds, way.seconds)),
        median(quotients(ways[0].processor, way.processor)));
  }
  store.stop();
}

}  // namespace
}  // namespace gradlink

int main(int count, char** arguments) {
  gradlink::run(count > 1 ? std::max(1, std::atoi(arguments[1])) : 15,
                count > 2 ? std::strtoull(arguments[2], nullptr, 10) : SIZE_MAX);
  return 0;
}
