#include "cuda/ptx_kernels.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cuda/memory.h"
#include "ptx/run.h"
#include "support/environment.h"

namespace gradlink::fake {
namespace {

ptx::Range reachable(const Context& context, std::uint64_t address) {
  const auto block = Memory::get().blockOf(address);
  if (!block || (block->place != kHost && !context.reaches(block->place))) return {};
  return {.begin = block->begin, .bytes = block->bytes};
}

Status statusOf(ptx::Outcome outcome) {
  switch (outcome) {
    case ptx::Outcome::done:
      return kOk;
    case ptx::Outcome::illegalAddress:
      return kIllegalAddress;
    case ptx::Outcome::misaligned:
      return kMisalignedAddress;
    case ptx::Outcome::failed:
      break;
  }
  return kLaunchFailed;
}

}  // namespace

bool runsPtx() {
  static const bool ptx = [] {
    const char* const setting = std::getenv("GRADLINK_FAKE_KERNELS");
    if (setting == nullptr || *setting == '\0' || std::string_view(setting) == "host") return false;
    if (std::string_view(setting) != "ptx") badSetting("GRADLINK_FAKE_KERNELS", setting);
    return true;
  }();
  return ptx;
}

KernelBody bindPtx(std::shared_ptr<const ptx::Program> program, Grid grid, void** parameters) {
  if (!program) return nullptr;
  std::vector<std::byte> block(program->parameterBytes);
  for (std::size_t i = 0; i < program->parameters.size(); ++i) {
    const auto [at, bytes] = program->parameters[i];
    std::memcpy(block.data() + at, parameters[i], bytes);
  }
  return [program = std::move(program), block = std::move(block), grid](Context& context) {
    const ptx::Result result =
        ptx::run(*program, grid.blocks, grid.threads, block,
                 [&](std::uint64_t address) { return reachable(context, address); });
    if (result.outcome != ptx::Outcome::done) {
      std::fprintf(stderr, "fake CUDA: %s\n", result.message.c_str());
    }
    return statusOf(result.outcome);
  };
}

}  // namespace gradlink::fake
