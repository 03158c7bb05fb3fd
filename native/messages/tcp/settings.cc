#include "messages/tcp/settings.h"

#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "messages/tcp/address.h"

namespace gradlink::messages::tcp {
namespace {

constexpr int kMostRanks = 1 << 16;

std::mutex givenMutex;
std::optional<Settings> given;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || value[0] == '\0') {
    throw misuse("join", std::string("ranks without MPI need MASTER_ADDR, MASTER_PORT, ") +
                             "RANK and WORLD_SIZE; " + name + " is not set");
  }
  return value;
}

int number(const char* name, int low, int high) {
  const std::string text = variable(name);
  int value = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || value < low ||
      value > high) {
    throw misuse("join", std::string(name) + " must be an integer from " + std::to_string(low) +
                             " to " + std::to_string(high) + ", got '" + text + "'");
  }
  return value;
}

}  // namespace

void set(const Settings& settings) {
  const std::lock_guard lock(givenMutex);
  given = settings;
}

Settings settings() {
  {
    const std::lock_guard lock(givenMutex);
    if (given) return *given;
  }
  Settings read;
  read.size = number("WORLD_SIZE", 1, kMostRanks);
  read.rank = number("RANK", 0, read.size - 1);
  read.address = variable("MASTER_ADDR");
  read.port = number("MASTER_PORT", 1, kMostPort);
  const char* const secret = std::getenv("GRADLINK_JOB");
  if (secret != nullptr) read.secret = secret;
  const char* const sealed = std::getenv("GRADLINK_TCP_SEAL");
  read.sealsAll = sealed != nullptr && std::string_view(sealed) == "all";
  return read;
}

}  // namespace gradlink::messages::tcp
