// Exported functions that can be missing, as in older versions of the library a fake stands for.
#pragma once

#include "support/environment.h"

/// FAKE_EXPORT(Status, cuInit, (unsigned flags)) { ... } defines and exports cuInit, in any
/// namespace. The symbol is an indirect function: with the fault `missing=cuInit`, dlsym gives
/// null, as it does for a symbol that is not there.
#define FAKE_EXPORT(Result, name, arguments)                                                  \
  static Result fake_##name arguments;                                                        \
  extern "C" {                                                                                \
  __attribute__((no_sanitize("address", "thread", "undefined"))) static auto resolve_##name() \
      -> Result(*) arguments {                                                                \
    return ::gradlink::fake::hasFault("missing", #name) ? nullptr : &fake_##name;             \
  }                                                                                           \
  __attribute__((visibility("default"), ifunc("resolve_" #name))) Result name arguments;      \
  }                                                                                           \
  static Result fake_##name arguments
