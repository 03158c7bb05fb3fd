// Kernels as a module's text has them, run by the interpreter of ptx/: with
// GRADLINK_FAKE_KERNELS=ptx.
#pragma once

#include <memory>

#include "cuda/kernel_table.h"
#include "ptx/program.h"

namespace gradlink::fake {

/// Whether launches run the module's text; else the host's build of the kernels.
bool runsPtx();

/// Takes the arguments, as cuLaunchKernel does when it is called. Null for a null program.
KernelBody bindPtx(std::shared_ptr<const ptx::Program> program, Grid grid, void** parameters);

}  // namespace gradlink::fake
