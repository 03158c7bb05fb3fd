#include "core/hosts/rank_names.h"

#include <cctype>
#include <cstddef>
#include <optional>

namespace gradlink {
namespace {

bool digitAt(const std::string& text, std::size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
}

/// "ranks 0, 2 and 5" in a text.
struct Mention {
  std::string word;
  std::vector<int> ranks;
  /// The text between the numbers; one fewer than the numbers.
  std::vector<std::string> gaps;
};

/// The mention at `at`, if there is one; `end` is set behind it.
std::optional<Mention> mentionAt(const std::string& text, std::size_t at, std::size_t& end) {
  std::size_t word = 0;
  for (const std::string name : {"rank ", "ranks "}) {
    if (text.compare(at, name.size(), name) == 0) word = name.size();
  }
  const bool begins = at == 0 || std::isalpha(static_cast<unsigned char>(text[at - 1])) == 0;
  if (word == 0 || !begins || !digitAt(text, at + word)) return {};
  Mention mention{text.substr(at, word), {}, {}};
  at += word;
  for (;;) {
    end = at;
    while (digitAt(text, end) && end - at < 9) ++end;
    mention.ranks.push_back(std::stoi(text.substr(at, end - at)));
    const std::size_t gap = text.compare(end, 2, ", ") == 0      ? 2
                            : text.compare(end, 5, " and ") == 0 ? 5
                                                                 : 0;
    if (gap == 0 || !digitAt(text, end + gap)) return mention;
    mention.gaps.push_back(text.substr(end, gap));
    at = end + gap;
  }
}

std::string replaceMentions(const std::string& text,
                            const std::function<std::string(const Mention&)>& written) {
  std::string replaced;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = 0;
    if (const std::optional<Mention> mention = mentionAt(text, at, end)) {
      replaced += written(*mention);
      at = end;
    } else {
      replaced += text[at++];
    }
  }
  return replaced;
}

// Removes the operation from the message: it is the inner one.
std::string withoutOp(const Error& error) {
  const std::string text = error.what();
  const std::string prefix = error.op + ": ";
  return !error.op.empty() && text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

std::string renameRanks(const std::string& text, const std::function<int(int)>& nameOf) {
  return replaceMentions(text, [&](const Mention& mention) {
    std::string renamed = mention.word;
    for (std::size_t i = 0; i < mention.ranks.size(); ++i) {
      renamed += (i == 0 ? "" : mention.gaps[i - 1]) + std::to_string(nameOf(mention.ranks[i]));
    }
    return renamed;
  });
}

std::string rewriteRanks(const std::string& text,
                         const std::function<std::string(const std::vector<int>&)>& written) {
  return replaceMentions(text, [&](const Mention& mention) { return written(mention.ranks); });
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
