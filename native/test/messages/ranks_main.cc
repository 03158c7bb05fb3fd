#include <cstdio>

#include "test/messages/ranks.h"

int main(int count, char** arguments) {
  using namespace gradlink;
  const std::string name = count > 1 ? arguments[1] : "";
  const auto found = test::rankBodies().find(name);
  if (found == test::rankBodies().end()) {
    std::fprintf(stderr, "no rank body '%s'\n", name.c_str());
    return 2;
  }
  std::string wrong;
  try {
    wrong = found->second({arguments + 2, arguments + count});
  } catch (const Error& error) {
    wrong = std::string("threw ") + gradlink::nameOf(error.code) + " rank " +
            std::to_string(error.rank) + ": " + error.what();
  }
  if (wrong.empty()) return 0;
  // The others may wait for this rank.
  messages::abortJob("WRONG: " + wrong, 7);
  return 7;
}
