#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

/// What a register holds that no instruction has written.
constexpr std::uint64_t kUnwritten = 0xa5a5a5a5a5a5a5a5;

}  // namespace

Result run(const Program& program, unsigned blocks, unsigned threads,
           const std::vector<std::byte>& parameters, const FindRange& findRange) {
  std::vector<std::uint64_t> registers(program.registers, kUnwritten);
  for (const auto& [index, bits] : program.constants) registers[index] = bits;
  registers[kTrue] = 1;
  registers[kThreads] = threads;
  registers[kBlocks] = blocks;
  registers[kZero] = 0;
  registers[kOne] = 1;
  const std::size_t count = program.instructions.size();
  std::vector<Range> met(count);
  Thread thread{.registers = registers.data(),
                .parameters = parameters.data(),
                .next = 0,
                .met = met.data(),
                .findRange = &findRange};
  Result result;
  try {
    for (unsigned block = 0; block < blocks; ++block) {
      registers[kBlock] = block;
      for (unsigned each = 0; each < threads; ++each) {
        registers[kThread] = each;
        thread.next = 0;
        while (thread.next < count) {
          const Instruction& instruction = program.instructions[thread.next++];
          ++result.instructions;
          if (registers[instruction.guard] != static_cast<std::uint64_t>(instruction.negated)) {
            instruction.run(thread, instruction);
          }
        }
      }
    }
  } catch (const Trap& trap) {
    const std::size_t at = thread.next - 1;
    result.outcome = trap.outcome;
    result.message = program.name + ", line " + std::to_string(program.instructions[at].line) +
                     ", \"" + program.texts[at] + "\": " + trap.message + ", in thread " +
                     std::to_string(registers[kThread]) + " of block " +
                     std::to_string(registers[kBlock]);
  }
  return result;
}

}  // namespace gradlink::fake::ptx
