// Reading the specs of lib/optimizers, as lib/native/optimizer.ts declares them.
#pragma once

#include "binding/napi_setup.h"
#include "kvstore/optimizer/optimizer.h"

namespace gradlink::binding {

/// A NativeOptimizerSpec; Optimizer::create checks the values.
OptimizerSpec optimizerSpecArg(const Napi::Value&);

/// A NativeSchedulerSpec, with unchecked values.
SchedulerSpec schedulerSpecArg(const Napi::Value&);

}  // namespace gradlink::binding
