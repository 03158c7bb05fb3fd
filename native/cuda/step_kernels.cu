// The optimizers' kernels, a module of their own, because a driver compiles a whole module when it
// is loaded and most programs need only kernels.cu's. scripts/ptx.mjs makes PTX of
// this, test/fakes/cuda compiles it for the host.
#include "cuda/kernels/norms.cuh"
#include "cuda/kernels/step.cuh"
