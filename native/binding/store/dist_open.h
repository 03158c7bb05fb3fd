// Opening a store that first meets other processes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "binding/napi_setup.h"
#include "kvstore/store.h"

namespace gradlink::binding {

/// Runs `open` on a new thread; resolves to `made` of the store. `cancelled`: the environment ends.
Napi::Promise openStore(
    Napi::Env, std::function<std::unique_ptr<Store>(const std::atomic<bool>* cancelled)> open,
    std::function<Napi::Value(Napi::Env, std::unique_ptr<Store>)> made);

}  // namespace gradlink::binding
