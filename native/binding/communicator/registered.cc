// Buffers registered with NCCL for the collectives of one communicator.
#include <memory>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/communicator/communicator_wrap.h"
#include "binding/errors.h"
#include "binding/gpu/buffer.h"
#include "cuda/memory.h"
#include "nccl/nccl.h"

namespace gradlink::binding {
namespace {

const char* registrationText(const nccl::RegisteredMemory& part) {
  if (!part.kind()) return nullptr;
  return *part.kind() == nccl::RegistrationKind::symmetric ? "symmetric" : "local";
}

/// One for each held rank's GPU; plain memory for ranks without NCCL.
std::vector<DeviceBlock> registeredBlocks(Communicator& communicator, const std::vector<int>& gpus,
                                          std::size_t bytes, const CallOptions& options) {
  std::vector<DeviceBlock> blocks;
  auto* const ranks = dynamic_cast<nccl::NcclCommunicator*>(&communicator);
  if (ranks == nullptr) {
    for (const int gpu : gpus) {
      cuda::Device& device = cuda::Device::get(gpu);
      auto memory = std::make_shared<cuda::DeviceMemory>(device, bytes);
      void* const data = memory->data();
      blocks.push_back({&device, bytes, std::move(memory), data});
    }
    return blocks;
  }
  for (auto& part : ranks->allocRegistered(bytes, options)) {
    cuda::Device* const device = ranks->devices()[blocks.size()];
    void* const data = part->data();
    const char* const registration = registrationText(*part);
    blocks.push_back({device, bytes, std::shared_ptr<void>(std::move(part)), data, registration});
  }
  return blocks;
}

}  // namespace

/// (dtype, count, timeoutMs); returns one buffer for each held rank.
Napi::Value CommunicatorWrap::allocRegistered(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const std::span<const int> gpus = side().gpus;
    if (gpus.empty()) throw unsupported("allocRegistered", "the ranks have no GPUs");
    const DType dtype = gpuDTypeArg(info[0]);
    const std::size_t count = countArg(info[1], "count");
    const CallOptions options{numberArg(info[2], "timeoutMs")};
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeOf(dtype), &bytes)) {
      throw argumentError(env, "count", "a count that fits in memory", std::to_string(count));
    }
    auto blocks = std::make_shared<std::vector<DeviceBlock>>();
    Kept kept;
    kept.push_back(Napi::Persistent(Value()));
    return PendingOp::start(
        env, handle_->queue(),
        [raw = handle_.get(), blocks, bytes, options,
         ordinals = std::vector<int>(gpus.begin(), gpus.end())] {
          *blocks = registeredBlocks(raw->communicator(), ordinals, bytes, options);
        },
        [blocks, dtype, count](Napi::Env at) -> Napi::Value {
          const Napi::Array list = Napi::Array::New(at, blocks->size());
          for (std::uint32_t i = 0; i < list.Length(); ++i) {
            list.Set(i, DeviceBufferWrap::make(at, std::move((*blocks)[i]), dtype, count));
          }
          return list;
        },
        std::move(kept));
  });
}

}  // namespace gradlink::binding
