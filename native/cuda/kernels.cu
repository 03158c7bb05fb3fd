// The kernels of the package but for optimizer steps (step_kernels.cu): scripts/ptx.mjs makes
// PTX of this, test/fakes/cuda compiles it for the host.
#include "cuda/kernels/compression.cuh"
#include "cuda/kernels/diagnostics.cuh"
#include "cuda/kernels/pattern.cuh"
#include "cuda/kernels/sum.cuh"
#include "cuda/kernels/weighted.cuh"
