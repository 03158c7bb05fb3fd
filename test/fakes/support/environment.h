// What the environment asks of the fakes; see README.md for the variables. Faults are read once, at
// the first look: threads of streams look too, and must not read what a test is changing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradlink::fake {

/// The pieces of a comma list; empty for an unset or empty variable.
std::vector<std::string> listOf(const char* variable);
/// A whole number or `otherwise`; a value that is none ends the process with a message, because a
/// misspelt setting would make a test pass that tests nothing.
long numberOf(const char* variable, long otherwise);

/// The values of each `name=value` in GRADLINK_FAKE_FAULTS, "" for `name` alone.
std::vector<std::string> faultValues(std::string_view name);
/// The first of them.
std::optional<std::string> fault(std::string_view name);
/// The same as a number.
std::optional<double> faultNumber(std::string_view name);
/// Whether the list has exactly `name=value`.
bool hasFault(std::string_view name, std::string_view value);

/// What a number of a setting means; ends the process where it is none.
double parseNumber(std::string_view text, std::string_view setting);
[[noreturn]] void badSetting(std::string_view setting, std::string_view value);

}  // namespace gradlink::fake
