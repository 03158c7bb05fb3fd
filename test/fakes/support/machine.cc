#include "support/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "support/environment.h"

namespace gradlink::fake {
namespace {

constexpr int kMostGpus = 64;
constexpr int kLinksOfAGpu = 18;
/// What a large copy reaches of one link, of PCIe generation 5 with 16 lanes, and of the bytes that
/// memory moves: shares of the limits as real machines show them.
constexpr double kLinkRate = 24e9;
constexpr double kPcieRate = 55e9;
constexpr double kPciePeerRate = 40e9;
/// Of NVLink-C2C, ten links of 44.7 GB/s.
constexpr double kC2cRate = 400e9;
constexpr double kMemoryShare = 0.92;

constexpr const char* kFaults = "GRADLINK_FAKE_FAULTS";

/// "host" or the number of a GPU; ends the process for anything else.
int endOf(std::string_view text, int gpus, const char* setting) {
  if (text == "host") return kHost;
  const double index = parseNumber(text, setting);
  if (index != static_cast<int>(index) || index < 0 || index >= gpus) badSetting(setting, text);
  return static_cast<int>(index);
}

struct Pair {
  int from;
  int to;
  bool bothWays;
};

/// "A-B" both ways, "A>B" from A to B.
Pair pairOf(std::string_view text, int gpus, const char* setting) {
  const std::size_t mark = text.find_first_of("->");
  if (mark == text.npos) badSetting(setting, text);
  return {.from = endOf(text.substr(0, mark), gpus, setting),
          .to = endOf(text.substr(mark + 1), gpus, setting),
          .bothWays = text[mark] == '-'};
}

struct Setting {
  std::string_view name;
  std::string_view value;
};

Setting split(std::string_view text, char at, const char* setting) {
  const std::size_t mark = text.rfind(at);
  if (mark == text.npos) badSetting(setting, text);
  return {.name = text.substr(0, mark), .value = text.substr(mark + 1)};
}

}  // namespace

const Machine& Machine::get() {
  static const Machine& machine = *new Machine;
  return machine;
}

Machine::Machine() {
  const long count = numberOf("GRADLINK_FAKE_GPUS", 4);
  if (count < 0 || count > kMostGpus) badSetting("GRADLINK_FAKE_GPUS", std::to_string(count));
  const long memory = numberOf("GRADLINK_FAKE_MEMORY", 16L << 30);
  gpus_.resize(count);
  for (int i = 0; i < count; ++i) {
    Gpu& gpu = gpus_[i];
    gpu.bus = 0x0b + 0x0d * i;
    char text[24];
    std::snprintf(text, sizeof text, "0000:%02x:00.0", gpu.bus);
    gpu.pciBusId = text;
    for (int b = 0; b < 16; ++b) gpu.uuid[b] = static_cast<unsigned char>(0xa0 + 17 * i + 3 * b);
    gpu.memoryBytes = static_cast<std::size_t>(faultNumber("oom").value_or(memory));
  }
  reach_.resize(count * count);
  rates_.resize((count + 1) * (count + 1));
  readPeers();
  readNvLinks();
  readFaults();
  setRates();
  readRates();
}

std::string uuidText(const unsigned char* uuid) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", unsigned{uuid[i]});
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

std::array<unsigned char, 16> Machine::partUuid(int index) const {
  std::array<unsigned char, 16> uuid;
  const bool isPart = hasFault("mig", std::to_string(index));
  for (int b = 0; b < 16; ++b) {
    uuid[b] = static_cast<unsigned char>(gpus_[index].uuid[b] ^ (isPart ? 0xff : 0));
  }
  return uuid;
}

std::vector<int> Machine::visible() const {
  constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";
  std::vector<int> shown;
  if (std::getenv(kVariable) == nullptr) {
    for (int i = 0; i < count(); ++i) shown.push_back(i);
    return shown;
  }
  for (const std::string& item : listOf(kVariable)) {
    int found = -1;
    for (int i = 0; i < count(); ++i) {
      const bool isPart = hasFault("mig", std::to_string(i));
      const std::string part = "MIG-" + uuidText(partUuid(i).data());
      const std::string whole = "GPU-" + uuidText(gpus_[i].uuid);
      const bool named =
          item.size() > 4 && (whole.starts_with(item) || (isPart && part.starts_with(item)));
      if (item == std::to_string(i) || named) found = i;
    }
    if (found < 0) break;
    shown.push_back(found);
  }
  return shown;
}

bool Machine::canReach(int from, int to) const { return reach_[from * count() + to] != 0; }

double Machine::rate(int from, int to, bool direct) const {
  const auto at = [&](int a, int b) { return rates_[(a + 1) * (count() + 1) + (b + 1)]; };
  if (from == to || from == kHost || to == kHost || direct) return at(from, to);
  // Two copies, one after the other.
  return 1 / (1 / at(from, kHost) + 1 / at(kHost, to));
}

void Machine::readPeers() {
  constexpr const char* kSetting = "GRADLINK_FAKE_PEERS";
  const std::vector<std::string> list = listOf(kSetting);
  const bool all = list.empty() || list[0] == "all";
  for (int i = 0; i < count(); ++i) {
    for (int j = 0; j < count(); ++j) reach_[i * count() + j] = all && i != j;
  }
  if (all || list[0] == "none") return;
  for (const std::string& item : list) {
    const Pair pair = pairOf(item, count(), kSetting);
    if (pair.from == kHost || pair.to == kHost) badSetting(kSetting, item);
    reach_[pair.from * count() + pair.to] = 1;
    if (pair.bothWays) reach_[pair.to * count() + pair.from] = 1;
  }
}

void Machine::readNvLinks() {
  const char* text = std::getenv("GRADLINK_FAKE_NVLINK");
  const std::string_view kind = text && *text ? text : "mesh";
  if (kind != "mesh" && kind != "switch" && kind != "none")
    badSetting("GRADLINK_FAKE_NVLINK", kind);
  if (kind == "none" || count() < 2) return;
  for (int i = 0; i < count(); ++i) {
    std::vector<NvLink>& links = gpus_[i].links;
    if (kind == "switch") {
      links.assign(kLinksOfAGpu, {.remote = NvLink::kSwitch});
      continue;
    }
    for (int j = 0; j < count(); ++j) {
      const int each = std::max(1, kLinksOfAGpu / (count() - 1));
      if (j != i) links.insert(links.end(), each, {.remote = j});
    }
  }
}

void Machine::readFaults() {
  const auto gpuOf = [&](std::string_view text) -> Gpu& {
    const int index = endOf(text, count(), kFaults);
    if (index == kHost) badSetting(kFaults, text);
    return gpus_[index];
  };
  for (const std::string& gpu : faultValues("throttle")) gpuOf(gpu).throttled = true;
  for (const std::string& value : faultValues("pcie-width")) {
    const Setting setting = split(value, ':', kFaults);
    gpuOf(setting.name).pcieWidth = static_cast<int>(parseNumber(setting.value, kFaults));
  }
  for (const std::string& value : faultValues("pcie-generation")) {
    const Setting setting = split(value, ':', kFaults);
    gpuOf(setting.name).pcieGeneration = static_cast<int>(parseNumber(setting.value, kFaults));
  }
  for (const std::string& value : faultValues("links-down")) {
    const Setting setting = split(value, ':', kFaults);
    const Pair pair = pairOf(setting.name, count(), kFaults);
    const auto lose = [&](int at, int remote) {
      int left = static_cast<int>(parseNumber(setting.value, kFaults));
      for (NvLink& link : gpus_[at].links) {
        if (left > 0 && (link.remote == remote || link.remote == NvLink::kSwitch)) {
          link.active = false;
          --left;
        }
      }
    };
    lose(pair.from, pair.to);
    lose(pair.to, pair.from);
  }
}

void Machine::setRates() {
  const double memory = 2.0 * kMemoryClockKHz * 1e3 * kMemoryBusBits / 8;
  const auto share = [&](int i) { return gpus_[i].throttled ? kThrottledShare : 1.0; };
  const auto linksTo = [&](int i, int j) {
    return std::ranges::count_if(gpus_[i].links, [j](const NvLink& link) {
      return link.active && (link.remote == j || link.remote == NvLink::kSwitch);
    });
  };
  for (int i = 0; i < count(); ++i) {
    const double lanes = gpus_[i].pcieWidth / static_cast<double>(kMaxPcieWidth);
    const double pcie = kPcieRate * lanes / (1 << (kMaxPcieGeneration - gpus_[i].pcieGeneration));
    rateOf(kHost, i) = rateOf(i, kHost) = fault("c2c") ? kC2cRate : pcie;
    for (int j = 0; j < count(); ++j) {
      const long links = std::min(linksTo(i, j), linksTo(j, i));
      rateOf(i, j) = std::min(share(i), share(j)) * (links > 0 ? links * kLinkRate : kPciePeerRate);
    }
    // A copy reads and writes.
    rateOf(i, i) = share(i) * kMemoryShare * memory / 2;
  }
}

void Machine::readRates() {
  constexpr const char* kSetting = "GRADLINK_FAKE_LINKS";
  for (const std::string& item : listOf(kSetting)) {
    const Setting setting = split(item, '=', kSetting);
    const Pair pair = pairOf(setting.name, count(), kSetting);
    if (pair.from == kHost && pair.to == kHost) badSetting(kSetting, item);
    const double bytesPerSecond = parseNumber(setting.value, kSetting);
    if (!(bytesPerSecond > 0)) badSetting(kSetting, item);
    rateOf(pair.from, pair.to) = bytesPerSecond;
    if (pair.bothWays) rateOf(pair.to, pair.from) = bytesPerSecond;
  }
}

int Machine::computeCapability() {
  constexpr int kUsual = 90;
  static const long usual = numberOf("GRADLINK_FAKE_CAPABILITY", kUsual);
  return static_cast<int>(faultNumber("capability").value_or(usual));
}

int Machine::driverVersion() {
  constexpr int kUsual = 13000;
  return static_cast<int>(faultNumber("driver").value_or(kUsual));
}

}  // namespace gradlink::fake
