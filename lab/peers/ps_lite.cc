// ps-lite's side of run.js: one worker pushes one array under one key to one server and pulls it
// back, again and again. Both handlers copy: the server keeps what is pushed and answers with it,
// the worker gets it in an array of its own. Prints one JSON line for each size.
//
//   ps_lite BYTES,BYTES,... SECONDS     SECONDS: about how long to sample
//
// Scheduler, server and worker are this program, told apart by DMLC_ROLE.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "ps/ps.h"

namespace {

constexpr int kMinSamples = 5;
constexpr int kMaxSamples = 500;
constexpr int kWarmUp = 3;

class Store {
 public:
  void operator()(const ps::KVMeta& request, const ps::KVPairs<float>& data,
                  ps::KVServer<float>* server) {
    ps::KVPairs<float> answer;
    std::vector<float>& kept = values_[data.keys[0]];
    if (request.push) kept.assign(data.vals.begin(), data.vals.end());
    if (request.pull) {
      answer.keys = data.keys;
      // A copy of its own, as the next push may come before the answer has left.
      auto* copy = new float[kept.size()];
      std::memcpy(copy, kept.data(), kept.size() * sizeof(float));
      answer.vals.reset(copy, kept.size(), [](float* values) { delete[] values; });
      answer.lens = ps::SArray<int>(1, static_cast<int>(kept.size()));
    }
    server->Response(request, answer);
  }

 private:
  std::unordered_map<ps::Key, std::vector<float>> values_;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void measure(ps::KVWorker<float>& worker, ps::Key key, size_t bytes, double seconds) {
  const size_t count = bytes / sizeof(float);
  ps::SArray<ps::Key> keys(1, key);
  ps::SArray<int> lengths(1, static_cast<int>(count));
  ps::SArray<float> pushed(count);
  ps::SArray<float> pulled(count);
  for (size_t i = 0; i < count; ++i) pushed[i] = static_cast<float>(i % 1021);
  auto once = [&] {
    // Its servers take requests of the same priority in any order, so that the pull has to wait.
    worker.Wait(worker.ZPush(keys, pushed, lengths));
    worker.Wait(worker.ZPull(keys, &pulled, &lengths));
  };
  for (int i = 0; i < kWarmUp; ++i) once();
  std::vector<double> samples;
  const double end = now() + seconds;
  while (samples.size() < kMinSamples || (now() < end && samples.size() < kMaxSamples)) {
    const double start = now();
    once();
    samples.push_back(now() - start);
  }
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += pulled[i] == pushed[i] ? 0 : 1;
  std::printf("{\"bytes\": %zu, \"place\": \"store\", \"wrong\": %zu, \"seconds\": [", bytes,
              wrong);
  for (size_t i = 0; i < samples.size(); ++i) std::printf("%s%.9e", i == 0 ? "" : ", ", samples[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ps_lite BYTES,BYTES,... SECONDS\n");
    return 2;
  }
  ps::Start(0);
  if (ps::IsServer()) {
    auto* server = new ps::KVServer<float>(0);
    server->set_request_handle(Store());
    ps::RegisterExitCallback([server] { delete server; });
  }
  if (!ps::IsScheduler()) {
    // No request may come before the server has what answers it.
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup + ps::kServerGroup);
  }
  if (ps::IsWorker()) {
    ps::KVWorker<float> worker(0, 0);
    ps::Key key = 0;
    for (char* next = argv[1]; *next != '\0';) {
      const size_t bytes = std::strtoull(next, &next, 10);
      if (*next == ',') ++next;
      measure(worker, key++, bytes, std::atof(argv[2]));
    }
  }
  ps::Finalize(0, true);
  return 0;
}
