#include "support/leaks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace gradlink::fake {

void report(const char* variable, const char* library, const std::vector<std::string>& lines) {
  const char* file = std::getenv(variable);
  if (!file || !*file) return;
  std::string text;
  for (const std::string& line : lines) {
    text += std::string(library) + " " + std::to_string(::getpid()) + ": " + line + "\n";
  }
  const int descriptor = ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  // One write: O_APPEND keeps the lines of processes that end together apart.
  if (descriptor < 0 || ::write(descriptor, text.data(), text.size()) < 0) {
    std::fprintf(stderr, "gradlink fakes: cannot write %s\n%s", file, text.c_str());
  }
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace gradlink::fake
