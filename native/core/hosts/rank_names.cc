#include "core/hosts/rank_names.h"

#include <cctype>
#include <cstddef>

namespace gradlink {
namespace {

bool digitAt(const std::string& text, std::size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
}

// Errors begin with the operation they came from, which is a part's.
std::string withoutOp(const Error& error) {
  const std::string text = error.what();
  const std::string prefix = error.op + ": ";
  return !error.op.empty() && text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

std::string renameRanks(const std::string& text, const std::function<int(int)>& nameOf) {
  std::string renamed;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t word = 0;
    for (const std::string name : {"rank ", "ranks "}) {
      if (text.compare(at, name.size(), name) == 0) word = name.size();
    }
    const bool begins = at == 0 || std::isalpha(static_cast<unsigned char>(text[at - 1])) == 0;
    if (word == 0 || !begins || !digitAt(text, at + word)) {
      renamed += text[at++];
      continue;
    }
    renamed += text.substr(at, word);
    at += word;
    for (;;) {
      std::size_t end = at;
      while (digitAt(text, end) && end - at < 9) ++end;
      renamed += std::to_string(nameOf(std::stoi(text.substr(at, end - at))));
      at = end;
      const std::size_t gap = text.compare(at, 2, ", ") == 0      ? 2
                              : text.compare(at, 5, " and ") == 0 ? 5
                                                                  : 0;
      if (gap == 0 || !digitAt(text, at + gap)) break;
      renamed += text.substr(at, gap);
      at += gap;
    }
  }
  return renamed;
}

Error toWhole(const Error& error, const std::string& op, int partSize,
              const std::function<int(int)>& nameOf) {
  const bool ofWhole = error.rank >= partSize;
  const auto known = [&](int rank) { return rank < partSize ? nameOf(rank) : rank; };
  const std::string text = withoutOp(error);
  Error whole(error.code, op + ": " + (ofWhole ? text : renameRanks(text, known)));
  whole.op = op;
  whole.usable = error.usable;
  if (ofWhole) {
    whole.rank = error.rank - partSize - 1;
  } else if (error.rank >= 0) {
    whole.rank = nameOf(error.rank);
  }
  return whole;
}

Error fromWhole(const Error& error, int partSize) {
  Error part(error.code, withoutOp(error));
  part.op = error.op;
  part.rank = partSize + 1 + error.rank;
  return part;
}

}  // namespace gradlink
