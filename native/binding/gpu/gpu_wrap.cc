// GPUs, their libraries and page-locked memory, as lib/native/gpu.ts declares them.
#include <algorithm>
#include <limits>
#include <memory>

#include "binding/args.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "binding/external_memory.h"
#include "binding/gpu/buffer.h"
#include "binding/gpu/info.h"
#include "core/error.h"
#include "cuda/device.h"
#include "cuda/memory.h"

namespace gradlink::binding {

namespace {

int ordinalArg(const Napi::Value& value, const char* name) {
  return static_cast<int>(integerArg(value, name, 0, std::numeric_limits<int>::max()));
}

Napi::Value gpuCount(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return Napi::Number::New(info.Env(), cuda::Device::count()); });
}

Napi::Value gpuInfo(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return toObject(info.Env(), cuda::gpuInfo(ordinalArg(info[0], "ordinal")));
  });
}

Napi::Value gpuHealth(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const auto health = cuda::gpuHealth(stringArg(info[0], "pciBusId"));
    if (!health) return info.Env().Null();
    return toObject(info.Env(), *health);
  });
}

Napi::Value gpuXids(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::vector<int> xids = cuda::gpuXids(stringArg(info[0], "pciBusId"));
    const Napi::Array list = Napi::Array::New(info.Env(), xids.size());
    for (std::uint32_t i = 0; i < xids.size(); ++i) list.Set(i, xids[i]);
    return list;
  });
}

Napi::Value gpuPeer(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return toObject(info.Env(),
                    cuda::gpuPeer(ordinalArg(info[0], "from"), ordinalArg(info[1], "to")));
  });
}

Napi::Value installedGpus(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::vector<cuda::InstalledGpu> gpus = cuda::installedGpus();
    const Napi::Array list = Napi::Array::New(info.Env(), gpus.size());
    for (std::uint32_t i = 0; i < gpus.size(); ++i) list.Set(i, toObject(info.Env(), gpus[i]));
    return list;
  });
}

Napi::Value gpuLibraries(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return toObject(info.Env(), cuda::gpuLibraries()); });
}

Napi::Value allocPinned(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const std::size_t bytes = std::max<std::size_t>(countArg(info[0], "bytes"), 1);
    auto memory = std::make_shared<cuda::PinnedMemory>(cuda::PinnedMemory::zeroed(bytes));
    void* const data = memory->data();
    return arrayBufferOver(env, std::move(memory), data, bytes, "pinnedArray");
  });
}

}  // namespace

void exportGpu(Napi::Env env, Napi::Object exports) {
  DeviceBufferWrap::define(env, exports);
  exports.Set("gpuCount", Napi::Function::New<gpuCount>(env, "gpuCount"));
  exports.Set("gpuInfo", Napi::Function::New<gpuInfo>(env, "gpuInfo"));
  exports.Set("gpuHealth", Napi::Function::New<gpuHealth>(env, "gpuHealth"));
  exports.Set("gpuXids", Napi::Function::New<gpuXids>(env, "gpuXids"));
  exports.Set("gpuPeer", Napi::Function::New<gpuPeer>(env, "gpuPeer"));
  exports.Set("installedGpus", Napi::Function::New<installedGpus>(env, "installedGpus"));
  exports.Set("gpuLibraries", Napi::Function::New<gpuLibraries>(env, "gpuLibraries"));
  exports.Set("allocPinned", Napi::Function::New<allocPinned>(env, "allocPinned"));
}

}  // namespace gradlink::binding
