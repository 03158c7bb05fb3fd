// What a fake still holds when the process exits, appended to the file GRADLINK_FAKE_LEAKS names.
#pragma once

#include <string>
#include <vector>

namespace gradlink::fake {

/// Appends "LIBRARY PID: LINE" for each line; without lines it still creates the file, so that an
/// empty file says "ran, and left nothing" where no file says "never ran". Several processes may
/// append to one file. Call from a function marked __attribute__((destructor)): that runs after all
/// static objects of the process are gone, which may hold and free what is counted.
void reportLeaks(const char* library, const std::vector<std::string>& lines);

}  // namespace gradlink::fake
