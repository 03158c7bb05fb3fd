// All kernels but the optimizer steps. scripts/ptx.mjs compiles PTX, test/fakes/cuda for the host.
#include "cuda/kernels/compression.cuh"
#include "cuda/kernels/diagnostics.cuh"
#include "cuda/kernels/pattern.cuh"
#include "cuda/kernels/sum.cuh"
#include "cuda/kernels/weighted.cuh"
