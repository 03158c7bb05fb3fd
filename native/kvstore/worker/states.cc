#include "kvstore/worker/states.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "kvstore/base/whole_file.h"
#include "kvstore/optimizer/state_parts.h"
#include "kvstore/store_checks.h"

namespace gradlink::dist {
namespace {

constexpr std::string_view kMagic = "gradlink distributed optimizer states 1\n";

struct StatesPart {
  std::string suffix;
  std::uint64_t bytes;
  std::string checksum;
};

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

std::string hashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  return hex(hash);
}

/// The checksum at the end of saveStates(), which loadStates() verifies.
std::string checksumOf(std::span<const std::uint8_t> part) {
  std::uint64_t hash = 0;
  if (part.size() >= sizeof hash) {
    std::memcpy(&hash, part.data() + part.size() - sizeof hash, sizeof hash);
  }
  return hex(hash);
}

[[noreturn]] void rejectParts(const std::string& file, const std::string& what) {
  throw storeMisuse(file + ": not usable as optimizer states: " + what +
                    "; expected a file that saveOptimizerStates wrote");
}

bool isManifest(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

bool areDigits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

/// Whether it has the form ".<16 hex digits>-<i>of<n>": any other could name a file elsewhere.
bool isSuffix(std::string_view text) {
  constexpr std::size_t kDash = 17;
  constexpr std::string_view kDecimal = "0123456789";
  if (text.size() <= kDash || text[0] != '.' || text[kDash] != '-') return false;
  const std::string_view numbers = text.substr(kDash + 1);
  const std::size_t of = numbers.find("of");
  return areDigits(text.substr(1, kDash - 1), "0123456789abcdef") && of != std::string_view::npos &&
         areDigits(numbers.substr(0, of), kDecimal) && areDigits(numbers.substr(of + 2), kDecimal);
}

std::vector<StatesPart> readManifest(const std::string& file, std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::string_view kEnd = "end ";
  const std::size_t end = text.rfind(kEnd);
  if (end == std::string_view::npos ||
      text.substr(end) != std::string(kEnd) + hashOf(text.substr(0, end)) + "\n") {
    rejectParts(file, "its checksum does not match, so it was cut short or altered");
  }
  std::istringstream lines(std::string(text.substr(kMagic.size(), end - kMagic.size())));
  std::vector<StatesPart> parts;
  std::string word;
  StatesPart part;
  while (lines >> word >> part.suffix >> part.bytes >> part.checksum) {
    if (!isSuffix(part.suffix)) rejectParts(file, "it names a part '" + part.suffix + "'");
    parts.push_back(part);
  }
  return parts;
}

/// Parts of a file to be replaced; empty if it is not a manifest.
std::vector<StatesPart> partsOf(const std::string& file) {
  try {
    const auto bytes = readWholeFile(file);
    if (isManifest(bytes)) return readManifest(file, bytes);
  } catch (const Error&) {
  }
  return {};
}

/// Removes those of `parts` that are not in `staying`.
void removeParts(const std::string& file, std::span<const StatesPart> parts,
                 std::span<const StatesPart> staying) {
  for (const StatesPart& part : parts) {
    const bool stays =
        std::any_of(staying.begin(), staying.end(),
                    [&part](const StatesPart& other) { return other.suffix == part.suffix; });
    if (!stays) unlink((file + part.suffix).c_str());
  }
}

LoadedStates readPart(const std::string& manifest, const StatesPart& part) {
  // Parts lie beside the manifest; if each file is a link, beside the manifest's target.
  const std::string beside = linkedFile(manifest) + part.suffix;
  const std::string file = access(beside.c_str(), F_OK) == 0 ? beside : manifest + part.suffix;
  const auto bytes = readWholeFile(file);
  if (bytes.size() != part.bytes || checksumOf(bytes) != part.checksum) {
    rejectParts(file, "it is not the part that " + manifest + " names");
  }
  try {
    return loadStates(bytes);
  } catch (const Error& error) {
    throw storeMisuse(file + ": " + error.what());
  }
}

void append(OptimizerState& whole, const OptimizerState& next, const std::string& file) {
  try {
    appendState(whole, next);
  } catch (const Error& error) {
    rejectParts(file, error.what());
  }
}

}  // namespace

void writeStateParts(const std::string& name, std::span<const std::vector<std::uint8_t>> parts) {
  const std::string file = linkedFile(name);
  requireReplaceable(file);
  const std::vector<StatesPart> before = partsOf(file);
  std::vector<StatesPart> made;
  try {
    std::string manifest(kMagic);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string checksum = checksumOf(parts[i]);
      const std::string suffix =
          "." + checksum + "-" + std::to_string(i) + "of" + std::to_string(parts.size());
      made.push_back({suffix, parts[i].size(), checksum});
      writeOwnFile(file + suffix, parts[i]);
      manifest.append("part ").append(suffix).append(" ");
      manifest.append(std::to_string(parts[i].size())).append(" ").append(checksum).append("\n");
    }
    manifest += "end " + hashOf(manifest) + "\n";
    writeOwnFile(
        file, std::span(reinterpret_cast<const std::uint8_t*>(manifest.data()), manifest.size()));
  } catch (...) {
    removeParts(file, made, before);
    throw;
  }
  removeParts(file, before, made);
}

LoadedStates readStateParts(const std::string& file) {
  const auto bytes = readWholeFile(file);
  if (!isManifest(bytes)) return readStates(file);
  LoadedStates whole;
  std::unordered_map<std::string, OptimizerState*> states;
  bool first = true;
  for (const StatesPart& part : readManifest(file, bytes)) {
    LoadedStates loaded = readPart(file, part);
    if (first) {
      whole.spec = loaded.spec;
      whole.optimizerName = loaded.optimizerName;
      whole.numUpdate = loaded.numUpdate;
    }
    first = false;
    if (loaded.optimizerName != whole.optimizerName) {
      rejectParts(file, "its parts are of different optimizers");
    }
    whole.numUpdate = std::max(whole.numUpdate, loaded.numUpdate);
    for (auto& state : loaded.states) {
      const auto [known, isNew] = states.emplace(state->key, state.get());
      if (isNew) {
        whole.states.push_back(std::move(state));
      } else {
        append(*known->second, *state, file);
      }
    }
  }
  if (first) rejectParts(file, "it names no parts");
  return whole;
}

std::vector<std::uint8_t> statesFor(int server, const Optimizer& optimizer,
                                    std::span<const StateOfKey> states, bool withOptimizer) {
  std::vector<OptimizerState> own;
  for (const StateOfKey& key : states) {
    for (const Shard& shard : key.shards) {
      if (shard.server == server) own.push_back(cutState(*key.state, shard.first, shard.count));
    }
  }
  std::vector<const OptimizerState*> pointers;
  pointers.reserve(own.size());
  for (const OptimizerState& state : own) pointers.push_back(&state);
  return saveStates(optimizer, pointers, withOptimizer);
}

}  // namespace gradlink::dist
