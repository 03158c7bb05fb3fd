// Properties and state of GPUs, from the driver and from NVML if available. The structs match
// lib/native/gpu.ts; unknown values are empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradlink::cuda {

struct GpuLink {
  int index = 0;
  bool active = false;
  /// "4.0".
  std::optional<std::string> version;
  /// One direction.
  std::optional<double> bytesPerSecond;
  /// In the form of GpuInfo::pciBusId; empty for a switch, an inactive link, or if unknown.
  std::optional<std::string> remotePciBusId;
  bool remoteIsSwitch = false;
  /// Replays, recoveries and CRC errors (NVLink 5: transmission errors) since the driver's load.
  std::optional<std::uint64_t> errors;
};

/// From NVML at the time of the call: an idle GPU has lower clocks and PCIe generation.
struct GpuHealth {
  /// The nearest host memory and cores.
  std::optional<int> numaNode;
  std::optional<int> pcieGeneration;
  std::optional<int> pcieWidth;
  std::optional<int> maxPcieGeneration;
  std::optional<int> maxPcieWidth;
  std::optional<int> smClockMHz;
  std::optional<int> maxSmClockMHz;
  std::optional<int> memoryClockMHz;
  std::optional<int> temperatureC;
  std::optional<double> powerW;
  /// Percent of the last sampling period (up to a second) in which a kernel ran.
  std::optional<int> utilizationPercent;
  /// See throttleReasonNames; empty if nothing limits the clocks.
  std::optional<std::vector<std::string>> throttleReasons;
  /// Memory errors since the driver was loaded, including corrected ones.
  std::optional<std::uint64_t> eccErrors;
  std::optional<std::uint64_t> pcieReplays;
  /// Active NVLink-C2C links to the host processor, which carry traffic to host memory.
  std::optional<int> c2cLinks;
  std::vector<GpuLink> links;
};

struct GpuInfo {
  int ordinal = 0;
  /// "NVIDIA H200".
  std::string name;
  /// "GPU-8f2e..." or, for a part of a GPU, "MIG-...".
  std::optional<std::string> uuid;
  /// "0000:1b:00.0".
  std::string pciBusId;
  std::size_t memoryBytes = 0;
  /// "9.0".
  std::string computeCapability;
  /// The source of this package's kernels: "cubin sm_90", "compiled from PTX", or "none: " and why.
  std::string kernels;
  /// Who may use it: "default" (all), "exclusive" (one process at a time) or "prohibited".
  std::string computeMode;
  int multiprocessors = 0;
  /// 0 if unknown.
  std::size_t l2Bytes = 0;
  int copyEngines = 0;
  int memoryBusBits = 0;
  int memoryClockKHz = 0;
  /// Empty without NVML, or if it does not know the GPU.
  std::optional<GpuHealth> health;
};

/// A GPU of the machine, whether or not CUDA_VISIBLE_DEVICES includes it.
struct InstalledGpu {
  std::string pciBusId;
  std::optional<std::string> name;
  /// "GPU-8f2e..."
  std::optional<std::string> uuid;
  /// In MIG mode: processes use instances of it.
  bool isPartitioned = false;
};

struct GpuPeer {
  /// Whether its kernels and copies access the other's memory directly.
  bool access = false;
  /// The driver's rank of the link, lower is faster; empty without access.
  std::optional<int> performanceRank;
  /// The nearest common node over PCIe, as in nvidia-smi topo: "X" (itself), "PIX", ... "SYS".
  std::optional<std::string> path;
};

struct GpuLibraries {
  std::string driverFile;
  /// 13000 is CUDA 13.0.
  int driverVersion = 0;
  /// Of the display driver: "580.159.04".
  std::optional<std::string> driverRelease;
  std::optional<std::string> nvmlFile;
  std::optional<std::string> nvmlMissing;
  bool isConfidential = false;
};

/// Whether the GPUs are in the mode of confidential computing: kernels do not see at once what the
/// host writes to page-locked memory. False where nobody says so.
bool isConfidential();

/// These throw what Driver::get and Device::get throw.
GpuInfo gpuInfo(int ordinal);
GpuPeer gpuPeer(int from, int to);
GpuLibraries gpuLibraries();

/// Empty without NVML.
std::vector<InstalledGpu> installedGpus();

/// Whether health describes the links or only counts errors, which takes half the NVML calls.
enum class Links : std::uint8_t { described, counted };

/// Only the health, to be read during a run. `pciBusId` as in GpuInfo.
std::optional<GpuHealth> gpuHealth(const std::string& pciBusId, Links = Links::described);

/// XID errors since the last call, by NVIDIA's numbers; the first call starts counting. Empty if
/// NVML does not report them. Of several errors of a kind it may return only the last.
std::vector<int> gpuXids(const std::string& pciBusId);

std::optional<int> nearestNode(const std::string& pciBusId);

/// In the form of GpuInfo. Throws what Driver::get and Device::get throw.
std::string pciBusIdOf(int ordinal);

/// The names of NVML's bits: "softwarePowerCap" and so on. Idle clocks, clocks set by applications
/// and display clocks are no throttling and have no name.
std::vector<std::string> throttleReasonNames(std::uint64_t bits);

/// Normalizes bus ids for comparison: "00000000:1B:00.0" to "0000:1b:00.0".
std::string canonicalPciBusId(const std::string& id);

}  // namespace gradlink::cuda
