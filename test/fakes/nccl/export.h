// Exported functions of a library that may say it is an older one.
#pragma once

#include "nccl/comm.h"
#include "support/export.h"

/// FAKE_NCCL(22803, ncclAlltoAll, (arguments)) { ... } exports a function that returns a result
/// and that versions before 2.28.3 do not have. Like FAKE_EXPORT, it is also absent with the fault
/// `missing=ncclAlltoAll`.
#define FAKE_NCCL(since, name, arguments)                                                 \
  FAKE_EXPORT_AS(::gradlink::nccl::abi::Result, name, arguments, arguments, &fake_##name, \
                 ::gradlink::fake::libraryVersion() >= (since))
