#include "ptx/decoder.h"

#include <cstdlib>
#include <limits>

namespace gradlink::fake::ptx {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::vector<std::string_view> splitOperands(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{' || text[at] == '}') inside = text[at] == '{';
    if (text[at] != ',' || inside) continue;
    parts.push_back(trimmed(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  const std::string_view last = trimmed(text.substr(begin));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

void Decoder::fail(const std::string& why) const {
  throw BadPtx(program_.name + ", line " + std::to_string(line_) + ", \"" + text_ + "\": " + why);
}

void Decoder::parameter(std::string_view declaration, std::uint32_t line) {
  text_ = declaration;
  line_ = line;
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  for (std::size_t at = 0; at < declaration.size();) {
    const std::size_t end = std::min(declaration.find_first_of(" \t\n", at), declaration.size());
    const std::string word(declaration.substr(at, end - at));
    at = end + 1;
    if (word.empty() || word == ".param") continue;
    if (word[0] != '.') {
      const std::size_t bracket = word.find('[');
      const bool array = bracket != word.npos;
      if (bytes == 0) {
        if (alignment != 0 && !array)
          alignment = std::strtoul(word.c_str(), nullptr, 10);
        else
          fail("a parameter without a type");
        continue;
      }
      if (array) bytes *= std::strtoul(word.c_str() + bracket + 1, nullptr, 10);
      alignment = std::max<std::size_t>(alignment, array ? 1 : bytes);
      std::size_t& used = program_.parameterBytes;
      used = (used + alignment - 1) / alignment * alignment;
      parameters_[word.substr(0, bracket)] = used;
      program_.parameters.push_back({.at = used, .bytes = bytes});
      used += bytes;
    } else if (word == ".align") {
      alignment = 1;
    } else {
      bytes = std::strtoul(word.c_str() + 2, nullptr, 10) / 8;
    }
  }
}

void Decoder::label(std::string_view name) {
  labels_[std::string(name)] = static_cast<std::uint32_t>(program_.instructions.size());
}

std::uint16_t Decoder::registerOf(std::string_view name) {
  if (name == "%tid.x") return kThread;
  if (name == "%ntid.x") return kThreads;
  if (name == "%ctaid.x") return kBlock;
  if (name == "%nctaid.x") return kBlocks;
  if (name.find('.') != name.npos) fail("no special register of this name is known");
  const auto [found, added] = registers_.try_emplace(std::string(name));
  if (added) {
    if (program_.registers > std::numeric_limits<std::uint16_t>::max()) fail("too many registers");
    found->second = static_cast<std::uint16_t>(program_.registers++);
  }
  return found->second;
}

std::uint16_t Decoder::constant(std::uint64_t bits) {
  const auto [found, added] = constants_.try_emplace(bits);
  if (added) {
    if (program_.registers > std::numeric_limits<std::uint16_t>::max()) fail("too many registers");
    found->second = static_cast<std::uint16_t>(program_.registers++);
    program_.constants.push_back({.index = found->second, .bits = bits});
  }
  return found->second;
}

std::uint16_t Decoder::operand(std::string_view text, std::string_view type) {
  if (text.empty()) fail("an operand is missing");
  if (text[0] == '%') return registerOf(text);
  const std::string number(text);
  char* end = nullptr;
  std::uint64_t bits = 0;
  if (text.starts_with("0f") || text.starts_with("0d")) {
    bits = std::strtoull(number.c_str() + 2, &end, 16);
  } else if (type.starts_with("f")) {
    fail("a float must be written in hexadecimal");
  } else if (text[0] == '-') {
    bits = static_cast<std::uint64_t>(std::strtoll(number.c_str(), &end, 0));
  } else {
    bits = std::strtoull(number.c_str(), &end, 0);
  }
  if (end == number.c_str() || *end != '\0') fail("no operand: " + number);
  return constant(bits);
}

void Decoder::address(Instruction& instruction, std::string_view text) {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') fail("an address was expected");
  text = trimmed(text.substr(1, text.size() - 2));
  const std::size_t plus = text.find('+');
  if (plus != text.npos) {
    instruction.offset = std::strtoll(std::string(text.substr(plus + 1)).c_str(), nullptr, 0);
  }
  const std::string_view base = trimmed(text.substr(0, plus));
  if (base.starts_with('%')) {
    instruction.from[0] = registerOf(base);
    return;
  }
  const auto found = parameters_.find(base);
  if (found == parameters_.end()) fail("no parameter of this name");
  instruction.offset += static_cast<std::int64_t>(found->second);
}

void Decoder::operands(Instruction& instruction, std::string_view opcode, std::string_view rest) {
  const std::string_view type = opcode.substr(opcode.rfind('.') + 1);
  std::vector<std::string_view> all = splitOperands(rest);
  if (all.empty()) return;
  if (opcode.starts_with("st")) std::swap(all.front(), all.back());
  const auto spread = [&](std::string_view text, std::uint16_t(&into)[4]) {
    std::size_t at = 0;
    if (!text.starts_with('{')) {
      into[at] = operand(text, type);
      return;
    }
    for (const std::string_view each : splitOperands(text.substr(1, text.size() - 2))) {
      if (at == 4) fail("too many operands in braces");
      into[at++] = operand(each, type);
    }
  };
  spread(all[0], instruction.to);
  if (opcode.starts_with("ld") || opcode.starts_with("st") || opcode.starts_with("atom")) {
    if (all.size() < 2) fail("an address was expected");
    address(instruction, all[1]);
    if (all.size() > 2) instruction.from[1] = operand(all[2], type);
  } else if (all.size() == 2 && all[1].starts_with('{')) {
    spread(all[1], instruction.from);
  } else {
    if (all.size() > 5) fail("too many operands");
    for (std::size_t i = 1; i < all.size(); ++i) instruction.from[i - 1] = operand(all[i], type);
  }
}

void Decoder::statement(std::string_view text, std::uint32_t line) {
  text_ = text;
  line_ = line;
  if (text.starts_with(".reg") || text.starts_with(".pragma")) return;
  if (text.starts_with('.')) fail("no directive that is known");
  Instruction instruction;
  instruction.line = line;
  if (text.starts_with('@')) {
    instruction.negated = text[1] == '!';
    const std::size_t begin = instruction.negated ? 2 : 1;
    const std::size_t end = text.find_first_of(" \t", begin);
    instruction.guard = registerOf(text.substr(begin, end - begin));
    text = trimmed(text.substr(end));
  }
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view opcode = text.substr(0, end);
  const std::string_view rest = trimmed(text.substr(end));
  std::string form(opcode);
  if (opcode.starts_with("bra")) {
    jumps_.push_back({.at = program_.instructions.size(), .label = std::string(rest)});
  } else if (opcode.starts_with("mov") &&
             (rest.ends_with("%globaltimer") || rest.ends_with("%clock64"))) {
    form += ".clock";
    instruction.to[0] = registerOf(trimmed(rest.substr(0, rest.find(','))));
  } else {
    if (opcode.starts_with("mov") && rest.find('{') != rest.npos) {
      form += rest.starts_with('{') ? ".unpack" : ".pack";
    }
    operands(instruction, opcode, rest);
  }
  instruction.run = operationOf(form);
  if (instruction.run == nullptr) fail("no opcode that is known");
  program_.instructions.push_back(instruction);
  program_.texts.emplace_back(text_);
}

Program Decoder::finish() {
  for (const Jump& jump : jumps_) {
    const auto found = labels_.find(jump.label);
    if (found == labels_.end()) fail("no label " + jump.label);
    program_.instructions[jump.at].target = found->second;
  }
  return std::move(program_);
}

}  // namespace gradlink::fake::ptx
