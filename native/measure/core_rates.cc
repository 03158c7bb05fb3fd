#include "measure/core_rates.h"

#include <pthread.h>
#include <sched.h>

#include <cstddef>
#include <ctime>
#include <exception>
#include <string>
#include <system_error>
#include <thread>

#include "core/error.h"

namespace gradlink::measure {
namespace {

/// Some ten microseconds, so reading the clocks is negligible.
constexpr int kStepsOfChunk = 4096;

Error refused(const std::string& what) {
  return Error(ErrorCode::invalidArgument, what).withOp("coreRates").stillUsable();
}

void bindTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    throw refused("core " + std::to_string(core) + " is not one that this process may use");
  }
}

double secondsOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Each step depends on the previous one, so the width of the core does not matter.
double chunk(double value) {
  for (int step = 0; step < kStepsOfChunk; ++step) value = value * 0.999999 + 1e-6;
  return value;
}

void run(const CoreRatesOptions& options, double* steps, double* shares) {
  volatile double result = 1;
  for (int round = 0; round < options.rounds; ++round) {
    const double start = secondsOf(CLOCK_MONOTONIC);
    const double ran = secondsOf(CLOCK_THREAD_CPUTIME_ID);
    const double end = start + options.roundSeconds;
    double done = 0;
    double now = start;
    while (now < end) {
      result = chunk(result);
      done += kStepsOfChunk;
      now = secondsOf(CLOCK_MONOTONIC);
    }
    const double own = secondsOf(CLOCK_THREAD_CPUTIME_ID) - ran;
    steps[round] = own > 0 ? done / own : 0;
    shares[round] = own / (now - start);
  }
}

}  // namespace

CoreRates coreRates(const CoreRatesOptions& options) {
  if (options.cores.empty() || options.rounds < 1 || !(options.roundSeconds > 0)) {
    throw refused("expected at least one core and one round, and a time above 0");
  }
  const auto rounds = static_cast<std::size_t>(options.rounds);
  const std::size_t count = options.cores.size();
  CoreRates rates{std::vector<double>(count * rounds), std::vector<double>(count * rounds)};
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::thread> threads;
  const auto join = [&] {
    for (std::thread& thread : threads) thread.join();
  };
  try {
    for (std::size_t at = 0; at < count; ++at) {
      threads.emplace_back([&, at] {
        try {
          bindTo(options.cores[at]);
          run(options, &rates.stepsPerSecond[at * rounds], &rates.shares[at * rounds]);
        } catch (...) {
          failures[at] = std::current_exception();
        }
      });
    }
  } catch (const std::system_error& error) {
    join();
    throw Error(ErrorCode::system,
                "cannot start " + std::to_string(count) + " threads: " + error.what())
        .withOp("coreRates")
        .stillUsable();
  }
  join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return rates;
}

}  // namespace gradlink::measure
