// What an average with one neighbour must move beside an all-reduce, 4 ranks in one memory: bare
// loops of both with the engine's kernels and without its waits, in turns:
// neighbors_benchmark BYTES,BYTES,... in,out SECONDS. Each line is JSON: the times of one of them
// at one size and place.
//
// plain:  each rank copies its array to a stage, chunk by chunk, which the others read.
// shared: all arrays are within reach; each rank computes a quarter of all results.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernels/reduce_kernels.h"
#include "core/memory/aligned_buffer.h"
#include "core/thread_pool.h"

namespace gradlink {
namespace {

constexpr std::size_t kRanks = 4;
constexpr std::size_t kChunk = 16 << 10;  // elements, as the engine's neighbours stage them
constexpr std::size_t kSlots = 4;
constexpr int kFewestRounds = 5;

using Clock = std::chrono::steady_clock;
using Ranks = std::array<float*, kRanks>;

struct Arrays {
  explicit Arrays(std::size_t elements) {
    for (std::size_t r = 0; r < kRanks; ++r) {
      memory.emplace_back(elements * sizeof(float));
      at[r] = static_cast<float*>(memory[r].data());
      // Not zero, whose lines some processors write faster.
      std::fill_n(at[r], elements, 1.0F + static_cast<float>(r));
    }
  }
  std::vector<AlignedBuffer> memory;
  Ranks at{};
};

struct Data {
  std::size_t count;
  Arrays in{count};
  Arrays out{count};
  Arrays stage{kSlots * kChunk};
};

/// The averages of `ranks` ranks from `first` on: each own array beside that of the rank before.
void average(std::size_t first, std::size_t ranks, const Ranks& own, const Ranks& others,
             const Ranks& out, std::size_t count) {
  std::array<WeightedOutput, kRanks> outputs{};
  std::array<WeightedTerm, 2 * kRanks> terms{};
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::size_t r = first + i;
    outputs[i] = {out[r], 2};
    terms[2 * i] = {own[r], 0.5};
    terms[2 * i + 1] = {others[(r + kRanks - 1) % kRanks], 0.5};
  }
  weightedSums({outputs.data(), ranks}, {terms.data(), 2 * ranks}, count, DType::float32);
}

Ranks shifted(const Ranks& at, std::size_t elements) {
  Ranks moved = at;
  for (float*& one : moved) one += elements;
  return moved;
}

void copy(float* to, const float* from, std::size_t count) {
  void* const dst[] = {to};
  copyMany(dst, from, count * sizeof(float));
}

/// body(rank, chunk's begin, chunk's length, its slot) for all ranks, in step where threads are.
template <class Stage, class Read>
void staged(const Data& data, Stage stage, Read read) {
  ThreadPool& pool = ThreadPool::shared();
  const auto threads = std::min<std::size_t>(kRanks, static_cast<std::size_t>(pool.width()));
  pool.parallel(threads, [&](std::size_t thread) {
    for (std::size_t begin = 0; begin < data.count; begin += kChunk) {
      const std::size_t length = std::min(kChunk, data.count - begin);
      const std::size_t slot = begin / kChunk % kSlots * kChunk;
      for (std::size_t r = thread; r < kRanks; r += threads) stage(r, begin, length, slot);
      for (std::size_t r = thread; r < kRanks; r += threads) read(r, begin, length, slot);
    }
  });
}

void stagedNeighbors(Data& data, const Ranks& out) {
  staged(
      data,
      [&](std::size_t r, std::size_t begin, std::size_t length, std::size_t slot) {
        copy(data.stage.at[r] + slot, data.in.at[r] + begin, length);
      },
      [&](std::size_t r, std::size_t begin, std::size_t length, std::size_t slot) {
        average(r, 1, shifted(data.in.at, begin), shifted(data.stage.at, slot), shifted(out, begin),
                length);
      });
}

/// The parts of a chunk that are not rank r's own.
template <class Body>
void others(std::size_t r, std::size_t length, Body body) {
  const std::size_t part = length / kRanks;
  for (std::size_t step = 1; step < kRanks; ++step) body((r + step) % kRanks, part);
}

void stagedAllReduce(Data& data, const Ranks& out) {
  staged(
      data,
      [&](std::size_t r, std::size_t begin, std::size_t length, std::size_t slot) {
        others(r, length, [&](std::size_t owner, std::size_t part) {
          copy(data.stage.at[r] + slot + owner * part, data.in.at[r] + begin + owner * part, part);
        });
      },
      [&](std::size_t r, std::size_t begin, std::size_t length, std::size_t slot) {
        const std::size_t part = length / kRanks;
        std::array<const void*, kRanks> from{};
        std::array<void*, kRanks> to{};
        for (std::size_t s = 0; s < kRanks; ++s) {
          to[s] = s == r ? out[r] + begin + r * part : data.stage.at[s] + slot + r * part;
          from[s] = s == r ? data.in.at[r] + begin + r * part : to[s];
        }
        reduceMany(to, from, part, DType::float32, ReduceOp::sum);
        others(r, length, [&](std::size_t owner, std::size_t) {
          copy(out[r] + begin + owner * part, data.stage.at[r] + slot + owner * part, part);
        });
      });
}

/// body(begin, length) for parts that threads share.
template <class Body>
void shared(const Data& data, Body body) {
  const std::size_t parts = (data.count + kChunk - 1) / kChunk;
  ThreadPool::shared().parallel(
      parts, [&](std::size_t i) { body(i * kChunk, std::min(kChunk, data.count - i * kChunk)); });
}

void sharedNeighbors(Data& data, const Ranks& out) {
  shared(data, [&](std::size_t begin, std::size_t length) {
    const Ranks in = shifted(data.in.at, begin);
    average(0, kRanks, in, in, shifted(out, begin), length);
  });
}

void sharedAllReduce(Data& data, const Ranks& out) {
  shared(data, [&](std::size_t begin, std::size_t length) {
    std::array<const void*, kRanks> from{};
    std::array<void*, kRanks> to{};
    for (std::size_t r = 0; r < kRanks; ++r) {
      from[r] = data.in.at[r] + begin;
      to[r] = out[r] + begin;
    }
    reduceMany(to, from, length, DType::float32, ReduceOp::sum);
  });
}

using Way = void (*)(Data&, const Ranks&);

double secondsOf(Way way, Data& data, const Ranks& out) {
  const auto begun = Clock::now();
  way(data, out);
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

void print(const char* memory, const char* way, std::size_t bytes, const char* place,
           const std::vector<double>& seconds) {
  std::printf(R"({"contender":"bare-%s-%s","bytes":%zu,"place":"%s","wrong":0,"seconds":[)", memory,
              way, bytes, place);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    std::printf("%s%.9f", i == 0 ? "" : ",", seconds[i]);
  }
  std::printf("]}\n");
}

void compare(const char* memory, Way allReduce, Way neighbors, Data& data, const char* place,
             double budget) {
  const Ranks& out = std::string_view(place) == "in" ? data.in.at : data.out.at;
  std::vector<double> all;
  std::vector<double> averages;
  double spent = 0;
  for (int round = -2; round < kFewestRounds || spent < budget; ++round) {
    const double ofAll = secondsOf(allReduce, data, out);
    const double ofAverage = secondsOf(neighbors, data, out);
    if (round < 0) continue;
    spent += ofAll + ofAverage;
    all.push_back(ofAll);
    averages.push_back(ofAverage);
  }
  const std::size_t bytes = data.count * sizeof(float);
  print(memory, "calls", bytes, place, all);
  print(memory, "neighbors", bytes, place, averages);
}

std::vector<std::string> split(const char* list) {
  std::vector<std::string> parts;
  std::istringstream from(list);
  for (std::string part; std::getline(from, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace
}  // namespace gradlink

int main(int count, char** arguments) {
  using namespace gradlink;
  if (count != 4) {
    std::fprintf(stderr, "usage: neighbors_benchmark BYTES,BYTES,... in,out SECONDS\n");
    return 2;
  }
  for (const std::string& bytes : split(arguments[1])) {
    Data data{std::stoul(bytes) / sizeof(float)};
    for (const std::string& place : split(arguments[2])) {
      const double budget = std::stod(arguments[3]);
      compare("plain", stagedAllReduce, stagedNeighbors, data, place.c_str(), budget);
      compare("shared", sharedAllReduce, sharedNeighbors, data, place.c_str(), budget);
    }
  }
  return 0;
}
