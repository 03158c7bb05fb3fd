// Properties of GPUs as JavaScript objects.
#pragma once

#include "binding/napi_setup.h"
#include "cuda/info.h"

namespace gradlink::binding {

/// The fields of lib/native/gpu.ts; null if empty.
Napi::Object toObject(Napi::Env, const cuda::GpuInfo&);
Napi::Object toObject(Napi::Env, const cuda::GpuHealth&);
Napi::Object toObject(Napi::Env, const cuda::GpuPeer&);
Napi::Object toObject(Napi::Env, const cuda::InstalledGpu&);
Napi::Object toObject(Napi::Env, const cuda::GpuLibraries&);

}  // namespace gradlink::binding
