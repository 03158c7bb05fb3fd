// The statements of one kernel's body, made into a Program.
#pragma once

#include "ptx/program.h"

namespace gradlink::fake::ptx {

class Decoder {
 public:
  explicit Decoder(std::string name) { program_.name = std::move(name); }

  /// As ".param .align 8 .b8 name[40]".
  void parameter(std::string_view declaration, std::uint32_t line);
  void label(std::string_view name);
  void statement(std::string_view text, std::uint32_t line);
  /// Labels become targets.
  Program finish();

 private:
  struct Jump {
    std::size_t at;
    std::string label;
  };

  [[noreturn]] void fail(const std::string& why) const;
  std::uint16_t registerOf(std::string_view name);
  std::uint16_t constant(std::uint64_t bits);
  std::uint16_t operand(std::string_view text, std::string_view type);
  void address(Instruction& instruction, std::string_view text);
  void operands(Instruction& instruction, std::string_view opcode, std::string_view rest);

  Program program_;
  std::map<std::string, std::uint16_t, std::less<>> registers_;
  std::map<std::uint64_t, std::uint16_t> constants_;
  std::map<std::string, std::size_t, std::less<>> parameters_;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
  std::vector<Jump> jumps_;
  std::string text_;
  std::uint32_t line_ = 0;
};

std::string_view trimmed(std::string_view text);
/// At commas outside of braces.
std::vector<std::string_view> splitOperands(std::string_view text);

}  // namespace gradlink::fake::ptx
