// What a fake tells of its process, appended to the files that variables name.
#pragma once

#include <string>
#include <vector>

namespace gradlink::fake {

/// Appends "LIBRARY PID: LINE" for each line to the variable's file; without lines it still creates
/// the file, so that an empty file says "ran, and left nothing" where no file says "never ran".
/// Several processes may append to one file.
void report(const char* variable, const char* library, const std::vector<std::string>& lines);

/// What is still held when the process exits. Call from a function marked
/// __attribute__((destructor)): that runs after all static objects of the process are gone, which
/// may hold and free what is counted.
inline void reportLeaks(const char* library, const std::vector<std::string>& lines) {
  report("GRADLINK_FAKE_LEAKS", library, lines);
}

}  // namespace gradlink::fake
