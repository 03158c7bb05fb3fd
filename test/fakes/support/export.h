// Exported functions that can be missing, as in older versions of the library a fake stands for.
#pragma once

#include "support/environment.h"

/// FAKE_EXPORT(Status, cuInit, (unsigned flags)) { ... } defines and exports cuInit, in any
/// namespace. The symbol is an indirect function: with the fault `missing=cuInit`, dlsym gives
/// null, as it does for a symbol that is not there.
#define FAKE_EXPORT(Result, name, arguments) \
  FAKE_EXPORT_AS(Result, name, arguments, arguments, &fake_##name, true)

/// One that is there only where `isThere`, and whose callers reach the function that is defined
/// here, of these `parameters`, through another, `entry`.
#define FAKE_EXPORT_AS(Result, name, arguments, parameters, entry, isThere)                   \
  static Result fake_##name parameters;                                                       \
  extern "C" {                                                                                \
  __attribute__((no_sanitize("address", "thread", "undefined"))) static auto resolve_##name() \
      -> Result(*) arguments {                                                                \
    if (::gradlink::fake::hasFault("missing", #name) || !(isThere)) return nullptr;           \
    return entry;                                                                             \
  }                                                                                           \
  __attribute__((visibility("default"), ifunc("resolve_" #name))) Result name arguments;      \
  }                                                                                           \
  static Result fake_##name parameters

/// `arguments` after another: FAKE_AFTER(int count, (char* text)) is (int count, char* text).
#define FAKE_AFTER(first, arguments) (first FAKE_REST arguments)
#define FAKE_REST(...) __VA_OPT__(, ) __VA_ARGS__
