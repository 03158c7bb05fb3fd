// The machine that the fakes pretend to be: GPUs, what links them, and how fast. One description
// for the driver, NVML and NCCL, so that what is measured fits what is told.
//
// Defaults: the GPUs of an 8-GPU server of 2023 with 18 NVLinks each, joined directly in pairs.
// README.md lists the settings that change it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gradlink::fake {

inline constexpr int kHost = -1;
/// The clocks of a GPU that holds them back, as a share of what they could be.
inline constexpr double kThrottledShare = 0.6;

struct NvLink {
  static constexpr int kSwitch = -1;
  /// The GPU at the other end, or kSwitch.
  int remote = 0;
  bool active = true;
};

struct Gpu {
  std::string pciBusId;  // "0000:1b:00.0"
  unsigned bus = 0;
  unsigned char uuid[16] = {};
  std::size_t memoryBytes = 0;
  std::vector<NvLink> links;
  int pcieGeneration = 5;
  int pcieWidth = 16;
  bool throttled = false;
};

/// "8f2e0000-..."
std::string uuidText(const unsigned char* uuid);

class Machine {
 public:
  /// Read from the environment at the first call.
  static const Machine& get();

  static constexpr int kMultiprocessors = 132;
  static constexpr int kMemoryClockKHz = 2619000;
  static constexpr int kMemoryBusBits = 5120;
  static constexpr int kClockKHz = 1980000;
  static constexpr int kMaxPcieGeneration = 5;
  static constexpr int kMaxPcieWidth = 16;
  /// What NVML says of one link, one direction.
  static constexpr int kLinkMegabytes = 26562;

  /// 90 for 9.0; of all GPUs.
  static int computeCapability();
  /// 13000 for CUDA 13.0.
  static int driverVersion();

  int count() const { return static_cast<int>(gpus_.size()); }
  /// Of these, the ones that CUDA_VISIBLE_DEVICES shows, by ordinal: numbers and beginnings of
  /// "GPU-..." or, of a GPU with the fault `mig`, "MIG-...", up to the first that is none.
  std::vector<int> visible() const;
  /// What the driver calls a GPU's part, where it has one; else its own.
  std::array<unsigned char, 16> partUuid(int index) const;
  const Gpu& gpu(int index) const { return gpus_[index]; }
  /// Whether `from` can be given direct access to the memory of `to`.
  bool canReach(int from, int to) const;
  /// Bytes a second of a large copy; kHost for page-locked host memory. `direct`: over the GPUs'
  /// own link; otherwise through host memory.
  double rate(int from, int to, bool direct) const;

 private:
  Machine();
  void readPeers();
  void readNvLinks();
  void readFaults();
  void setRates();
  void readRates();
  double& rateOf(int from, int to) { return rates_[(from + 1) * (count() + 1) + (to + 1)]; }

  std::vector<Gpu> gpus_;
  std::vector<char> reach_;    // count x count
  std::vector<double> rates_;  // (count + 1) x (count + 1), the host first
};

}  // namespace gradlink::fake
