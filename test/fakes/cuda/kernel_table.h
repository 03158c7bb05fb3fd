// The kernels of native/cuda/kernels, compiled for the host and found by their names: what
// cuModuleGetFunction and cuLaunchKernel work with.
#pragma once

#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

#include "cuda/cost.h"
#include "cuda/kernels/language.h"
#include "cuda/stream.h"

namespace gradlink::fake {

/// In one dimension: our kernels use no other.
struct Grid {
  unsigned blocks;
  unsigned threads;
};

/// What computes in the place of the host's build; see ptx_kernels.h.
using KernelBody = std::function<Status(Context&)>;

struct Kernel {
  std::string_view name;
  /// Reads the arguments, as cuLaunchKernel does when it is called. Without a body the host's build
  /// of the kernel runs.
  Work (*bind)(Grid grid, void** parameters, KernelBody body);
};

template <std::size_t count>
constexpr const Kernel* find(const Kernel (&kernels)[count], std::string_view name) {
  for (const Kernel& kernel : kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

/// Null for a name that the host's build of the kernels does not have.
const Kernel* findKernel(std::string_view name);
/// The part of the table that is of step_kernels.cu.
const Kernel* findStepKernel(std::string_view name);

/// `kernel` is a kernel, `traffic` a function of Traffic& and the kernel's arguments that tells
/// what it reads and writes. Every kernel has one: it is what finds memory that the GPU does not
/// reach.
template <auto kernel, auto traffic>
struct Bound;

template <class... Arguments, void (*kernel)(Arguments...), void (*traffic)(Traffic&, Arguments...)>
struct Bound<kernel, traffic> {
  static Work bind(Grid grid, void** parameters, KernelBody body) {
    return bindAll(grid, parameters, std::move(body), std::index_sequence_for<Arguments...>());
  }

 private:
  template <std::size_t... index>
  static Work bindAll(Grid grid, void** parameters, KernelBody body,
                      std::index_sequence<index...>) {
    const std::tuple<Arguments...> arguments(*static_cast<Arguments*>(parameters[index])...);
    return [grid, arguments, body = std::move(body)](Execution& execution) -> Status {
      Traffic moved(execution.context);
      std::apply([&](const auto&... each) { traffic(moved, each...); }, arguments);
      Status status = moved.status();
      if (status == kOk) status = body ? body(execution.context) : onHost(grid, arguments);
      if (status != kOk) return status;
      execution.now += moved.seconds();
      return kOk;
    };
  }

  static Status onHost(Grid grid, const std::tuple<Arguments...>& arguments) {
    kernels::gridDim.x = grid.blocks;
    for (unsigned block = 0; block < grid.blocks; ++block) {
      kernels::blockIdx.x = block;
      for (unsigned thread = 0; thread < grid.threads; ++thread) {
        kernels::threadIdx.x = thread;
        std::apply(kernel, arguments);
      }
    }
    return kOk;
  }
};

template <auto kernel, auto traffic>
constexpr Kernel entry(std::string_view name) {
  return {.name = name, .bind = &Bound<kernel, traffic>::bind};
}

}  // namespace gradlink::fake
