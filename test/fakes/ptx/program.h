// PTX, decoded once a module: operands are indexes of registers, labels are numbers of
// instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gradlink::fake::ptx {

struct Thread;
struct Instruction;
using Operation = void (*)(Thread&, const Instruction&);

/// Every operand is a register: constants and special registers have some of their own, which
/// nothing writes.
struct Instruction {
  Operation run = nullptr;
  /// Runs where the register `guard` is not `negated`; register 0 is always 1.
  std::uint32_t guard = 0;
  bool negated = false;
  /// A store's values are in `to` as a load's, with the address in from[0].
  std::uint16_t to[4] = {};
  std::uint16_t from[4] = {};
  /// Added to an address; of a parameter, where it is.
  std::int64_t offset = 0;
  std::uint32_t target = 0;
  std::uint32_t line = 0;
};

struct Constant {
  std::uint16_t index;
  std::uint64_t bits;
};

/// Registers that every kernel has, at the start of its file.
enum Special : std::uint16_t { kTrue, kThread, kThreads, kBlock, kBlocks, kZero, kOne, kSpecials };

struct Program {
  std::string name;
  std::vector<Instruction> instructions;
  std::vector<std::string> texts;  // of the instructions
  std::vector<Constant> constants;
  std::size_t registers = kSpecials;
  struct Parameter {
    std::size_t at;
    std::size_t bytes;
  };
  std::vector<Parameter> parameters;
  std::size_t parameterBytes = 0;
};

/// Text that is no PTX that this interpreter knows; the message names kernel, line and text.
class BadPtx : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Programs = std::map<std::string, Program, std::less<>>;

Programs parse(std::string_view ptx);

/// The operation of an opcode, as "add.s32"; null for one that is not known.
Operation operationOf(std::string_view opcode);
/// Parts of that, by what they are for.
using Parts = std::vector<std::string_view>;
Operation arithmeticOf(const Parts& parts);
Operation bitsOf(const Parts& parts);
Operation comparisonOf(const Parts& parts);
Operation conversionOf(const Parts& parts);
Operation memoryOf(const Parts& parts);
/// "mov" and what has its name for its form: "mov.pack", "mov.unpack", "mov.clock", "bra", "ret".
Operation controlOf(const Parts& parts);

}  // namespace gradlink::fake::ptx
