// What GPUs are and how they are: as the driver says it, and from NVML where that is there. The
// structs are those of lib/native/gpu.ts; what nobody says is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradlink::cuda {

/// One NVLink of a GPU.
struct GpuLink {
  int index = 0;
  bool active = false;
  /// "4.0".
  std::optional<std::string> version;
  /// One direction.
  std::optional<double> bytesPerSecond;
  /// In the form of GpuInfo::pciBusId; empty for a switch, for an inactive link, and when unknown.
  std::optional<std::string> remotePciBusId;
  bool remoteIsSwitch = false;
  /// Replays, recoveries and CRC errors (NVLink 5: what was received or sent wrong) since the
  /// driver was loaded.
  std::optional<std::uint64_t> errors;
};

/// From NVML at the moment of the call: an idle GPU's clocks and PCIe generation are lower than a
/// busy one's.
struct GpuHealth {
  /// Of the host memory and cores that are nearest.
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
  /// Percent of the last moments (up to a second) in which a kernel ran.
  std::optional<int> utilizationPercent;
  /// Names, see throttleReasonNames; no names when nothing holds the clocks back.
  std::optional<std::vector<std::string>> throttleReasons;
  /// Memory errors since the driver was loaded, corrected ones too.
  std::optional<std::uint64_t> eccErrors;
  std::optional<std::uint64_t> pcieReplays;
  /// NVLink-C2C links to the processor beside it that are up: what goes to host memory goes there.
  std::optional<int> c2cLinks;
  /// All links the GPU has, by index; none without NVLink.
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
  /// How it comes by the kernels of this package: "cubin sm_90" or "compiled from PTX".
  std::string kernels;
  /// Who may use it: "default" (anybody), "exclusive" (one process at a time) or "prohibited".
  std::string computeMode;
  int multiprocessors = 0;
  /// These are 0 where the driver does not tell.
  std::size_t l2Bytes = 0;
  int copyEngines = 0;
  int memoryBusBits = 0;
  int memoryClockKHz = 0;
  /// Empty without NVML, or where it does not know the GPU.
  std::optional<GpuHealth> health;
};

/// A GPU of the machine, whether or not CUDA_VISIBLE_DEVICES shows it to this process.
struct InstalledGpu {
  /// In the form of GpuInfo::pciBusId.
  std::string pciBusId;
  std::optional<std::string> name;
  /// "GPU-8f2e..."
  std::optional<std::string> uuid;
  /// In MIG mode: a process gets a part of it.
  bool isPartitioned = false;
};

/// How one GPU reaches another.
struct GpuPeer {
  /// Whether its kernels and copies reach the other's memory directly.
  bool access = false;
  /// The driver's rank of the link, lower is faster; empty without access.
  std::optional<int> performanceRank;
  /// The nearest thing the two share on the way over PCIe, as nvidia-smi topo names it: "X"
  /// (itself), "PIX", "PXB", "PHB", "NODE", "SYS".
  std::optional<std::string> path;
};

struct GpuLibraries {
  std::string driverFile;
  /// 13000 is CUDA 13.0.
  int driverVersion = 0;
  /// Of the display driver: "580.159.04".
  std::optional<std::string> driverRelease;
  /// The NVML that was loaded.
  std::optional<std::string> nvmlFile;
  /// Why there is no NVML.
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

/// None without NVML.
std::vector<InstalledGpu> installedGpus();

/// What health says of the links: what they are, or only their errors, which takes half the calls
/// of NVML.
enum class Links : std::uint8_t { described, counted };

/// The health alone, for reading again during a run. `pciBusId` as in GpuInfo.
std::optional<GpuHealth> gpuHealth(const std::string& pciBusId, Links = Links::described);

/// XID errors since the look before, by NVIDIA's numbers: the first look is none yet. None where
/// NVML does not tell them. Of several of a kind between two looks it may name the last alone.
std::vector<int> gpuXids(const std::string& pciBusId);

/// Of the host memory and cores that are nearest to the GPU.
std::optional<int> nearestNode(const std::string& pciBusId);

/// In the form of GpuInfo. Throws what Driver::get and Device::get throw.
std::string pciBusIdOf(int ordinal);

/// NVML's bits by name: "softwarePowerCap" and so on. An idle GPU's clocks, clocks an application
/// asked for and a display's are no throttling, and have no name.
std::vector<std::string> throttleReasonNames(std::uint64_t bits);

/// The form in which bus ids are compared: "0000:1b:00.0" of "00000000:1B:00.0" too.
std::string canonicalPciBusId(const std::string& id);

}  // namespace gradlink::cuda
