// What the tests of the layers cuda and nccl share. They run against the stand-ins of test/fakes or
// on real GPUs, of which there may be one only.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <utility>
#include <vector>

#include "cuda/device.h"
#include "cuda/driver.h"
#include "test/thrown.h"

namespace gradlink::cuda {

/// Whether the driver is test/fakes': only that one obeys its settings. Asks without starting it,
/// so that a test may still change what it starts with.
inline bool onFakes() {
  const char* named = std::getenv("GRADLINK_CUDA_LIBRARY");
  void* library = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_LAZY);
  return library != nullptr && dlsym(library, "gradlinkFakeOwner") != nullptr;
}

/// A function of the stand-in that is none of the driver's.
template <class Function>
Function* controlOf(const char* name) {
  return reinterpret_cast<Function*>(
      dlsym(dlopen(Driver::get().file.c_str(), RTLD_NOW | RTLD_NOLOAD), name));
}

/// How often the stand-in was asked to queue something on the stream; null: on any.
inline std::uint64_t queuedOn(StreamHandle stream) {
  return controlOf<std::uint64_t(StreamHandle)>("gradlinkFakeQueued")(stream);
}

inline std::vector<Device*> allDevices() {
  std::vector<Device*> devices;
  for (int i = 0; i < Device::count(); ++i) devices.push_back(&Device::get(i));
  return devices;
}

/// Runs `body` and ends the process: 0 when it returned, 1 with the message on standard error when
/// it threw. A library is loaded once a process, and so what depends on the environment needs a
/// process of its own:
///   EXPECT_EXIT(inProcess({{"NAME", "value"}}, [] { ... }), testing::ExitedWithCode(1), "text");
[[noreturn]] inline void inProcess(
    const std::vector<std::pair<const char*, std::string>>& environment,
    const std::function<void()>& body) {
  for (const auto& [name, value] : environment) setenv(name, value.c_str(), 1);
  int status = 0;
  try {
    body();
  } catch (const Error& error) {
    std::cerr << nameOf(error.code) << ": " << error.what() << std::endl;
    status = 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    status = 1;
  }
  if (testing::Test::HasFailure()) status = 2;
  std::exit(status);
}

/// In a process of its own, of which nothing fails.
inline void expectFine(const std::vector<std::pair<const char*, std::string>>& environment,
                       const std::function<void()>& body) {
  EXPECT_EXIT(inProcess(environment, body), testing::ExitedWithCode(0), "");
}

/// Forks run the executable anew, so that no library is loaded and no thread runs yet.
class FreshProcesses : public testing::Test {
 protected:
  FreshProcesses() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
/// The same on the stand-ins alone, which do what they are told.
class FreshFakes : public FreshProcesses {
 protected:
  void SetUp() override {
    if (!onFakes()) GTEST_SKIP() << "needs the stand-ins";
  }
};

/// What the stand-in says is left after `body` in a process of its own, one line each.
inline std::string leftBy(std::vector<std::pair<const char*, std::string>> environment,
                          const std::function<void()>& body) {
  // The process is this executable run anew, and must come to the same name.
  constexpr const char* kAgreed = "GRADLINK_TEST_LEFT_FILE";
  const bool isThat = std::getenv(kAgreed) != nullptr;
  const std::string own = testing::TempDir() + "gradlink-left-" + std::to_string(getpid());
  setenv(kAgreed, own.c_str(), 0);
  const std::string file = std::getenv(kAgreed);
  std::remove(file.c_str());
  environment.emplace_back("GRADLINK_FAKE_LEAKS", file);
  expectFine(environment, body);
  if (isThat) return "";
  unsetenv(kAgreed);
  std::ifstream report(file);
  EXPECT_TRUE(report) << "no report was written";
  const std::string text{std::istreambuf_iterator<char>(report), {}};
  std::remove(file.c_str());
  return text;
}

using test::messageOf;

}  // namespace gradlink::cuda
