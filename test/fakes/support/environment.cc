#include "support/environment.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace gradlink::fake {
namespace {

const std::vector<std::string>& faults() {
  static const auto& list = *new std::vector<std::string>(listOf("GRADLINK_FAKE_FAULTS"));
  return list;
}

}  // namespace

std::vector<std::string> listOf(const char* variable) {
  std::vector<std::string> pieces;
  const char* text = std::getenv(variable);
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    if (comma != 0) pieces.emplace_back(rest.substr(0, comma));
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return pieces;
}

void badSetting(std::string_view setting, std::string_view value) {
  // A stand-in that goes on as if nothing had been asked for would make tests pass in vain.
  std::fprintf(stderr, "gradlink fakes: cannot understand '%.*s' in %.*s\n",
               static_cast<int>(value.size()), value.data(), static_cast<int>(setting.size()),
               setting.data());
  std::abort();
}

double parseNumber(std::string_view text, std::string_view setting) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') badSetting(setting, text);
  return value;
}

long numberOf(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? static_cast<long>(parseNumber(text, variable)) : otherwise;
}

std::vector<std::string> faultValues(std::string_view name) {
  std::vector<std::string> values;
  for (const std::string& piece : faults()) {
    if (piece == name) values.emplace_back();
    if (piece.size() > name.size() && piece.starts_with(name) && piece[name.size()] == '=') {
      values.push_back(piece.substr(name.size() + 1));
    }
  }
  return values;
}

std::optional<std::string> fault(std::string_view name) {
  std::vector<std::string> values = faultValues(name);
  if (values.empty()) return std::nullopt;
  return std::move(values.front());
}

std::optional<double> faultNumber(std::string_view name) {
  const std::optional<std::string> value = fault(name);
  if (!value) return std::nullopt;
  return parseNumber(*value, "GRADLINK_FAKE_FAULTS");
}

bool hasFault(std::string_view name, std::string_view value) {
  const std::vector<std::string> values = faultValues(name);
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace gradlink::fake
