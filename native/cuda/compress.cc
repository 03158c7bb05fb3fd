#include "cuda/compress.h"

#include "cuda/kernel_module.h"
#include "cuda/kernels/tasks.h"
#include "cuda/task_ring.h"

namespace gradlink::cuda {
namespace {

using kernels::CodeData;
using kernels::kThreads;

CodeData dataOf(const CompressTask& task) {
  return {0, task.count, task.grad, task.residual, nullptr, task.codes, 0};
}
CodeData dataOf(const DecompressTask& task) {
  return {0, task.count, nullptr, nullptr, task.out, const_cast<std::uint8_t*>(task.codes), 0};
}
CodeData dataOf(const QuantizeTask& task) {
  return {0, task.count, task.grad, task.residual, task.out, nullptr, 0};
}

template <class Task>
void run(Stream& stream, TaskRing& ring, const char* kernel, CodeBits bits, float threshold,
         std::span<const Task> tasks) {
  std::size_t count = 0;
  for (const Task& task : tasks) count += task.count != 0 ? 1 : 0;
  if (count == 0) return;

  const TaskList list = ring.impl().reserve(count * sizeof(CodeData));
  ListWriter writer(list);
  CodeData* there = nullptr;
  CodeData* data = writer.take(count, there).data();
  std::uint64_t tiles = 0;
  for (const Task& task : tasks) {
    if (task.count == 0) continue;
    *data = dataOf(task);
    data->firstTile = tiles;
    // Null pointers of arrays that this kernel does not use count as aligned.
    data->aligned =
        isAligned(data->grad) && isAligned(data->residual) && isAligned(data->out) ? 1 : 0;
    tiles += (codeBytes(bits, task.count) + kernels::kCodeTile - 1) / kernels::kCodeTile;
    ++data;
  }
  ring.impl().send(list);
  kernelModule(stream.device(), "compression")
      .launch(stream, kernel, tiles, kThreads, static_cast<const CodeData*>(there),
              static_cast<std::uint32_t>(count), threshold);
}

}  // namespace

void compress(Stream& stream, TaskRing& ring, CodeBits bits, float threshold,
              std::span<const CompressTask> tasks) {
  run(stream, ring, bits == CodeBits::two ? "gradlinkCompress2" : "gradlinkCompress1", bits,
      threshold, tasks);
}

void decompress(Stream& stream, TaskRing& ring, CodeBits bits, float threshold,
                std::span<const DecompressTask> tasks) {
  run(stream, ring, bits == CodeBits::two ? "gradlinkDecompress2" : "gradlinkDecompress1", bits,
      threshold, tasks);
}

void quantize(Stream& stream, TaskRing& ring, CodeBits bits, float threshold,
              std::span<const QuantizeTask> tasks) {
  run(stream, ring, bits == CodeBits::two ? "gradlinkCompress2" : "gradlinkCompress1", bits,
      threshold, tasks);
}

}  // namespace gradlink::cuda
