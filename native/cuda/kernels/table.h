// The kernels as functions of the host, by their names: for whoever stands in for a GPU. Includes
// their source, so one file of a program includes this.
//
// To run a kernel: find it by its name; set gridDim.x; for each block set blockIdx.x, for each
// thread of it threadIdx.x, and call `run` with what cuLaunchKernel got as kernelParams (an array
// of pointers to the arguments). Threads may run in any order and blocks on several threads of the
// host: the indices are thread_local. A kernel never waits for another of its threads.
#pragma once

#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda/kernels.cu"
#include "cuda/kernels/list.h"
#include "cuda/step_kernels.cu"

namespace gradlink::kernels {

struct HostKernel {
  const char* name;
  /// For this thread's threadIdx, blockIdx and gridDim.
  void (*run)(void* const* arguments);
};

template <auto kernel>
struct HostCall;

template <class... Arguments, void (*kernel)(Arguments...)>
struct HostCall<kernel> {
  static void run(void* const* arguments) {
    call(arguments, std::index_sequence_for<Arguments...>());
  }

 private:
  template <std::size_t... i>
  static void call(void* const* arguments, std::index_sequence<i...>) {
    kernel(*static_cast<std::remove_cv_t<Arguments>*>(arguments[i])...);
  }
};

#define GRADLINK_HOST_KERNEL(name) {#name, HostCall<name>::run},
inline constexpr HostKernel kHostKernels[] = {GRADLINK_BASE_KERNELS(GRADLINK_HOST_KERNEL)
                                                  GRADLINK_STEP_KERNELS(GRADLINK_HOST_KERNEL)};
#undef GRADLINK_HOST_KERNEL

/// Null for a name that no kernel has.
inline const HostKernel* hostKernel(const char* name) {
  for (const HostKernel& each : kHostKernels) {
    if (std::strcmp(each.name, name) == 0) return &each;
  }
  return nullptr;
}

}  // namespace gradlink::kernels
