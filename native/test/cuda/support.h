// What the tests of the layers cuda and nccl share. They run against the stand-ins of test/fakes or
// on real GPUs, of which there may be one only.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "test/message_support.h"

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
///   EXPECT_EXIT(inProcess({{"NAME", "value"}}, [] { ... }), testing::ExitedWithCode(0), "");
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

/// Forks run the executable anew, so that no library is loaded and no thread runs yet.
class FreshProcesses : public testing::Test {
 protected:
  FreshProcesses() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

/// Checks the code of what `body` throws and gives its message; "" when nothing was thrown.
template <class Body>
std::string messageOf(ErrorCode code, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_STREQ(nameOf(error.code), nameOf(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected " << nameOf(code) << ", nothing was thrown";
  return "";
}

}  // namespace gradlink::cuda
