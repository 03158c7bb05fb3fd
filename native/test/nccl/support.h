// What the tests of NCCL share. Every case runs in processes of its own, because libraries and
// their settings are loaded once; what the stand-ins find left at a process's end fails its test.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "nccl/nccl.h"
#include "test/child.h"
#include "test/shm/support.h"

namespace gradlink::test {

inline std::size_t freeBytes(cuda::Device& device) {
  device.makeCurrent();
  std::size_t free = 0;
  std::size_t total = 0;
  cuda::Driver::get().memInfo(&free, &total);
  return free;
}

/// What the library of this process counts, where it is the stand-in; else nothing.
template <class... Of>
std::optional<std::size_t> countOf(const char* what, Of... of) {
  void* library = dlopen(nccl::libraryInfo().file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  const auto ask = reinterpret_cast<std::size_t (*)(Of...)>(dlsym(library, what));
  return ask == nullptr ? std::nullopt : std::optional<std::size_t>(ask(of...));
}

using Settings = std::map<std::string, std::string>;

/// A process that runs body, which returns "" or what is wrong. It must be started before this one
/// loads a library or starts a thread.
class Process {
 public:
  explicit Process(const std::function<std::string()>& body, const Settings& settings = {})
      : child_(
            [&] {
              for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
              setenv("GRADLINK_FAKE_LEAKS", leaks_.c_str(), 1);
              return textOf(body);
            },
            // The stand-ins report at the end.
            std::exit) {}

  void kill() const { child_.kill(); }
  /// What it had to say, and what it left behind.
  std::string wait() {
    std::string text = child_.wait();
    std::stringstream left;
    left << std::ifstream(leaks_).rdbuf();
    unlink(leaks_.c_str());
    if (!left.str().empty()) text += (text.empty() ? "" : "; ") + ("left: " + left.str());
    return text;
  }

 private:
  static std::string freshFile() {
    char leaks[] = "/tmp/gradlink-leaks-XXXXXX";
    ::close(mkstemp(leaks));
    std::fflush(nullptr);
    return leaks;
  }

  std::string leaks_ = freshFile();
  Child child_;
};

/// Runs one process and gives what it said.
inline std::string inProcess(const std::function<std::string()>& body,
                             const Settings& settings = {}) {
  return Process(body, settings).wait();
}

inline void expectFine(const Settings& settings, const std::function<std::string()>& body) {
  EXPECT_EQ(inProcess(body, settings), "");
}
inline void expectFine(const std::function<std::string()>& body) { expectFine({}, body); }

/// "" when body throws an Error of this code, and rank unless it is -2, whose text has all of
/// these.
inline std::string expectError(ErrorCode code, int rank,
                               std::initializer_list<std::string_view> tokens,
                               const std::function<void()>& body) {
  const std::optional<Error> error = errorOf(body);
  if (!error) return "did not throw";
  const bool right = error->code == code && (rank == -2 || error->rank == rank) &&
                     lacking(error->what(), tokens).empty();
  return right ? ""
               : std::string("threw ") + gradlink::nameOf(error->code) + " rank " +
                     std::to_string(error->rank) + ": " + error->what();
}

inline std::string expectError(ErrorCode code, int rank, std::string_view token,
                               const std::function<void()>& body) {
  const std::initializer_list<std::string_view> tokens{token};
  return expectError(code, rank, tokens, body);
}

inline std::vector<int> firstGpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

/// GPUs there are, found out by a process of its own; 0 without a driver.
inline int gpusHere() {
  static const int count = [] {
    const std::string said = inProcess([] { return std::to_string(cuda::Device::count()); });
    return said.empty() || said[0] == 't' ? 0 : std::atoi(said.c_str());
  }();
  return count;
}

/// Those that GPUs take: NCCL has no int16, and weights of neighbours there no integers.
inline std::vector<Case> casesOfGpus(std::vector<Case> cases) {
  std::erase_if(cases, [](const Case& c) {
    return !isOnGpus(c.dtype) || (c.op == Op::neighbor && !isFloat(c.dtype));
  });
  return cases;
}

/// Whether the libraries are the stand-ins, as tests of faults need.
inline bool onFakes() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen("libcuda.so.1", RTLD_LAZY);
  return library != nullptr && dlsym(library, "gradlinkFakeOwner") != nullptr;
}
inline bool testsRunOnFakes() {
  static const bool fakes = inProcess([] { return onFakes() ? "yes" : "no"; })[0] == 'y';
  return fakes;
}

/// Cases that need so many GPUs.
template <int needed>
class NeedsGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (gpusHere() < needed) GTEST_SKIP() << "needs " << needed << " GPUs";
  }
};
class OnFakes : public testing::Test {
 protected:
  void SetUp() override {
    if (!testsRunOnFakes()) GTEST_SKIP() << "needs libraries that fail when asked to";
  }
};

/// One rank's device memory for a case, filled with what shm_support.h says.
class GpuBuffers {
 public:
  GpuBuffers(const Case& c, int rank, cuda::Device& device)
      : case_(c), rank_(rank), stream_(device) {
    const Bytes data = input(c, rank);
    outBytes_ = c.outBlocks(rank) * c.block();
    const auto me = static_cast<std::size_t>(rank);
    if (c.inPlace && !data.empty() && outBytes_ > 0) {
      memory_ = cuda::DeviceMemory(device, std::max(data.size(), outBytes_));
      in_ = out_ = static_cast<std::byte*>(memory_.data());
      if (c.op == Op::allGather || c.op == Op::gather) in_ += me * c.block();
      if (c.op == Op::reduceScatter || c.op == Op::scatter) out_ += me * c.block();
    } else {
      memory_ = cuda::DeviceMemory(device, data.size());
      other_ = cuda::DeviceMemory(device, outBytes_);
      in_ = static_cast<std::byte*>(memory_.data());
      out_ = static_cast<std::byte*>(other_.data());
    }
    stream_.copy(in_, data.data(), data.size());
    stream_.synchronize();
  }

  const void* in() const { return in_; }
  void* out() const { return out_; }

  /// Empty when right, else what is wrong.
  std::string verify() { return compare(expected(case_, rank_)); }

  std::string compare(const Bytes& want) {
    Bytes got(want.size());
    stream_.copy(got.data(), out_, got.size());
    stream_.synchronize();
    for (std::size_t i = 0; i < want.size() / sizeOf(case_.dtype); ++i) {
      if (near(got, want, i)) continue;
      return case_.text() + ": rank " + std::to_string(rank_) + " is wrong in element " +
             std::to_string(i);
    }
    return {};
  }

 private:
  /// Averages of floats are scaled before they are summed: two units in the last place may differ.
  bool near(const Bytes& got, const Bytes& want, std::size_t i) const {
    const std::size_t bytes = sizeOf(case_.dtype);
    if (std::memcmp(got.data() + i * bytes, want.data() + i * bytes, bytes) == 0) return true;
    if (case_.reduceOp != ReduceOp::avg || !isFloat(case_.dtype)) return false;
    constexpr double kUnits[] = {0x1p-10, 0x1p-7, 0x1p-23, 0x1p-52};
    const double unit = kUnits[static_cast<int>(case_.dtype) - static_cast<int>(DType::float16)];
    const double a = reference::numberAt(got.data(), i, case_.dtype);
    const double b = reference::numberAt(want.data(), i, case_.dtype);
    return std::fabs(a - b) <= 2 * unit * std::fabs(b);
  }
  Case case_;
  int rank_;
  cuda::Stream stream_;
  cuda::DeviceMemory memory_;
  cuda::DeviceMemory other_;
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  std::size_t outBytes_ = 0;
};

/// The held ranks' memory, and spans of it.
struct HeldBuffers {
  std::vector<std::unique_ptr<GpuBuffers>> each;
  std::vector<const void*> in;
  std::vector<void*> out;

  HeldBuffers(const nccl::NcclCommunicator& comm, const Case& c) {
    for (std::size_t i = 0; i < comm.heldRanks().size(); ++i) {
      each.push_back(std::make_unique<GpuBuffers>(c, comm.heldRanks()[i], *comm.devices()[i]));
      in.push_back(each.back()->in());
      out.push_back(each.back()->out());
    }
  }
  Buffers view() const { return {in, out}; }
  std::string verify() const {
    for (const auto& buffers : each) {
      if (std::string wrong = buffers->verify(); !wrong.empty()) return wrong;
    }
    return {};
  }
};

/// allReduce of ones on all held ranks.
struct Ones {
  explicit Ones(nccl::NcclCommunicator& comm, std::size_t count = 100)
      : comm(comm), count(count), buffers(comm, {Op::allReduce, comm.size(), count}) {}
  void reduce(double timeoutMs = -1) const {
    comm.allReduce(buffers.view(), count, DType::float32, ReduceOp::sum, {.timeoutMs = timeoutMs});
  }
  nccl::Launch launch(std::span<const double> scales = {}) const {
    return {{Kind::allReduce, DType::float32, ReduceOp::sum, 0, count}, buffers.view(), scales};
  }
  nccl::NcclCommunicator& comm;
  std::size_t count;
  HeldBuffers buffers;
};

/// Runs a case on the ranks that a communicator holds and says what is wrong.
inline std::string runCase(nccl::NcclCommunicator& comm, const Case& c,
                           const CallOptions& options = {}) {
  const HeldBuffers buffers(comm, c);
  call(comm, c, buffers.view(), options);
  return buffers.verify();
}

inline std::string runCases(nccl::NcclCommunicator& comm, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    if (std::string wrong = runCase(comm, c); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace gradlink::test
