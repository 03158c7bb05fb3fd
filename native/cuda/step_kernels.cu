// The optimizers' kernels. A separate module: drivers compile whole modules, and most programs need
// only kernels.cu's. scripts/ptx.mjs compiles this to PTX, test/fakes/cuda for the host.
#include "cuda/kernels/norms.cuh"
#include "cuda/kernels/step.cuh"
