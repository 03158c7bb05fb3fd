// Reading what lib/optimizers hands over: lib/native/optimizer.ts declares its form.
#pragma once

#include "binding/napi_setup.h"
#include "kvstore/optimizer/optimizer.h"

namespace gradlink::binding {

/// A NativeOptimizerSpec. The values themselves are checked by Optimizer::create.
OptimizerSpec optimizerSpecArg(const Napi::Value&);

/// A NativeSchedulerSpec. Its values are to be checked.
SchedulerSpec schedulerSpecArg(const Napi::Value&);

}  // namespace gradlink::binding
