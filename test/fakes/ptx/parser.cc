// Text into kernels and their statements.
#include <algorithm>

#include "ptx/decoder.h"

namespace gradlink::fake::ptx {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view ptx) : text_(ptx) { blankComments(); }

  Programs all() {
    constexpr std::string_view kEntry = ".entry ";
    Programs programs;
    for (at_ = text_.find(kEntry); at_ != text_.npos; at_ = text_.find(kEntry, at_)) {
      at_ += kEntry.size();
      Program program = kernel();
      std::string name = program.name;
      programs.emplace(std::move(name), std::move(program));
    }
    return programs;
  }

 private:
  void blankComments() {
    for (std::size_t at = text_.find("//"); at != text_.npos; at = text_.find("//", at)) {
      for (; at < text_.size() && text_[at] != '\n'; ++at) text_[at] = ' ';
    }
  }

  std::uint32_t line() {
    lines_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                         text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    counted_ = at_;
    return static_cast<std::uint32_t>(lines_);
  }

  /// What is before one of `ends`; stands at it then.
  std::string_view until(std::string_view ends) {
    const std::size_t begin = at_;
    at_ = text_.find_first_of(ends, begin);
    if (at_ == text_.npos) throw BadPtx("the text ends within a kernel");
    return trimmed(std::string_view(text_).substr(begin, at_ - begin));
  }

  void skipBlank() {
    at_ = text_.find_first_not_of(" \t\r\n", at_);
    if (at_ == text_.npos) throw BadPtx("the text ends within a kernel");
  }

  Program kernel() {
    Decoder decoder{std::string(until("( \n"))};
    const std::string_view before = until("({");
    if (!before.empty()) throw BadPtx("what is " + std::string(before) + "?");
    if (text_[at_] == '(') {
      ++at_;
      for (const std::string_view each : splitOperands(until(")"))) decoder.parameter(each, line());
    }
    until("{");
    int depth = 0;
    do {
      skipBlank();
      if (text_[at_] == '{' || text_[at_] == '}') {
        depth += text_[at_++] == '{' ? 1 : -1;
        continue;
      }
      statement(decoder);
    } while (depth > 0);
    return decoder.finish();
  }

  void statement(Decoder& decoder) {
    const std::uint32_t at = line();
    const std::string_view text = until(";:");
    if (text_[at_++] == ':')
      decoder.label(text);
    else
      decoder.statement(text, at);
  }

  std::string text_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;
  std::ptrdiff_t lines_ = 1;
};

}  // namespace

Programs parse(std::string_view ptx) { return Parser(ptx).all(); }

}  // namespace gradlink::fake::ptx
