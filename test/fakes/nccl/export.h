// Exported functions of a library that may say it is an older one.
#pragma once

#include "nccl/comm.h"
#include "support/environment.h"

/// FAKE_NCCL(21803, ncclCommSplit, (arguments)) { ... } exports a function that returns a result
/// and that versions before 2.18.3 do not have. Like FAKE_EXPORT, it is also absent with the fault
/// `missing=ncclCommSplit`.
#define FAKE_NCCL(since, name, arguments)                                                     \
  static ::gradlink::nccl::abi::Result fake_##name arguments;                                 \
  extern "C" {                                                                                \
  __attribute__((no_sanitize("address", "thread", "undefined"))) static auto resolve_##name() \
      -> ::gradlink::nccl::abi::Result(*) arguments {                                         \
    const bool there = !::gradlink::fake::hasFault("missing", #name) &&                       \
                       ::gradlink::fake::libraryVersion() >= (since);                         \
    return there ? &fake_##name : nullptr;                                                    \
  }                                                                                           \
  __attribute__((visibility("default"),                                                       \
                 ifunc("resolve_" #name))) ::gradlink::nccl::abi::Result name arguments;      \
  }                                                                                           \
  static ::gradlink::nccl::abi::Result fake_##name arguments
