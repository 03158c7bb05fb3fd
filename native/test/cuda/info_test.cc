#include "cuda/info.h"

#include <gtest/gtest.h>
#include <regex.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "cuda/nvml.h"
#include "test/cuda/support.h"

namespace gradlink::cuda {
namespace {

using testing::ExitedWithCode;
using Names = std::vector<std::string>;

/// Whether all of the text is of the pattern. Not <regex>: GCC 12 warns of it under the sanitizers.
bool matches(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  EXPECT_EQ(regcomp(&compiled, ("^(" + pattern + ")$").c_str(), REG_EXTENDED | REG_NOSUB), 0);
  const bool matched = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return matched;
}

TEST(CudaInfo, EveryGpuIsDescribed) {
  std::set<std::string> uuids;
  std::set<std::string> places;
  for (int ordinal = 0; ordinal < Device::count(); ++ordinal) {
    const GpuInfo info = gpuInfo(ordinal);
    EXPECT_EQ(info.ordinal, ordinal);
    EXPECT_NE(Device::get(ordinal).label().find("(" + info.name + ")"), std::string::npos);
    ASSERT_TRUE(info.uuid);
    EXPECT_TRUE(matches(*info.uuid,
                        "(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"))
        << *info.uuid;
    EXPECT_TRUE(matches(info.pciBusId, "[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]"))
        << info.pciBusId;
    EXPECT_TRUE(matches(info.computeCapability, "[0-9]+\\.[0-9]")) << info.computeCapability;
    EXPECT_GT(info.memoryBytes, std::size_t{1} << 20);
    EXPECT_EQ(info.multiprocessors, Device::get(ordinal).multiprocessors());
    EXPECT_GT(info.l2Bytes, 0u);
    EXPECT_GT(info.copyEngines, 0);
    EXPECT_GT(info.memoryBusBits, 0);
    uuids.insert(*info.uuid);
    places.insert(info.pciBusId);
  }
  EXPECT_EQ(uuids.size(), static_cast<std::size_t>(Device::count()));
  // Parts of one GPU share its place.
  if (uuids.begin()->rfind("GPU-", 0) == 0) {
    EXPECT_EQ(places.size(), uuids.size());
  }
}

TEST(CudaInfo, HealthIsOfTheSameGpuAndPlausible) {
  if (Nvml::get() == nullptr) GTEST_SKIP() << Nvml::missing();
  for (int ordinal = 0; ordinal < Device::count(); ++ordinal) {
    const GpuInfo info = gpuInfo(ordinal);
    ASSERT_TRUE(info.health) << info.pciBusId;
    const GpuHealth& health = *info.health;
    if (health.pcieGeneration) {
      EXPECT_GE(*health.pcieGeneration, 1);
      EXPECT_LE(*health.pcieGeneration, health.maxPcieGeneration.value_or(8));
    }
    if (health.pcieWidth) {
      EXPECT_GE(*health.pcieWidth, 1);
      EXPECT_LE(*health.pcieWidth, health.maxPcieWidth.value_or(32));
    }
    if (health.smClockMHz && health.maxSmClockMHz) {
      EXPECT_LE(*health.smClockMHz, *health.maxSmClockMHz);
    }
    EXPECT_LT(health.temperatureC.value_or(0), 130);
    EXPECT_LT(health.powerW.value_or(0), 5000);
    EXPECT_LE(health.utilizationPercent.value_or(0), 100);
    int last = -1;
    for (const GpuLink& link : health.links) {
      EXPECT_GT(link.index, last);
      last = link.index;
      if (link.bytesPerSecond) {
        EXPECT_GT(*link.bytesPerSecond, 1e9);
        EXPECT_LT(*link.bytesPerSecond, 1e12);
      }
      if (!link.active || link.remoteIsSwitch) {
        EXPECT_FALSE(link.remotePciBusId);
      }
      if (link.remotePciBusId) {
        EXPECT_EQ(*link.remotePciBusId, canonicalPciBusId(*link.remotePciBusId));
        EXPECT_NE(*link.remotePciBusId, info.pciBusId);
      }
    }
  }
}

TEST(CudaInfo, LibrariesAreNamedWithTheirVersions) {
  const GpuLibraries libraries = gpuLibraries();
  EXPECT_EQ(libraries.driverFile, Driver::get().file);
  EXPECT_GE(libraries.driverVersion, 11000);
  EXPECT_NE(libraries.nvmlFile.has_value(), libraries.nvmlMissing.has_value());
  if (libraries.driverRelease) {
    EXPECT_TRUE(matches(*libraries.driverRelease, "[0-9]+(\\.[0-9]+)+"))
        << *libraries.driverRelease;
  }
}

TEST(CudaInfo, PeersAgreeWithTheDevices) {
  for (int from = 0; from < Device::count(); ++from) {
    for (int to = 0; to < Device::count(); ++to) {
      const GpuPeer peer = gpuPeer(from, to);
      EXPECT_EQ(peer.access, Device::get(from).canReach(Device::get(to)));
      EXPECT_EQ(peer.path == "X", from == to);
      if (peer.path) {
        const Names known{"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
        EXPECT_NE(std::find(known.begin(), known.end(), *peer.path), known.end()) << *peer.path;
      }
    }
  }
  messageOf(ErrorCode::invalidArgument, [] { gpuPeer(0, Device::count()); });
}

TEST(CudaInfo, HealthOfAPlaceWithoutAGpuIsUnknown) { EXPECT_FALSE(gpuHealth("ffff:ff:1f.7")); }

TEST(CudaInfo, BusIdsAreComparedInOneForm) {
  EXPECT_EQ(canonicalPciBusId("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(canonicalPciBusId("0000:1b:00.0"), "0000:1b:00.0");
  EXPECT_EQ(canonicalPciBusId("0001:FF:1F.7"), "0001:ff:1f.7");
  EXPECT_EQ(canonicalPciBusId("10000:01:00.0"), "10000:01:00.0");
  EXPECT_EQ(canonicalPciBusId("nowhere"), "nowhere");
}

TEST(CudaInfo, OnlyWhatHoldsClocksBackIsNamed) {
  EXPECT_EQ(throttleReasonNames(0), Names{});
  // Idle, clocks an application asked for, a display's.
  EXPECT_EQ(throttleReasonNames(0x1 | 0x2 | 0x100), Names{});
  EXPECT_EQ(throttleReasonNames(0x4), Names{"softwarePowerCap"});
  EXPECT_EQ(throttleReasonNames(0xff),
            (Names{"softwarePowerCap", "hardwareSlowdown", "syncBoost", "softwareThermal",
                   "hardwareThermal", "hardwarePowerBrake"}));
}

/// What the stand-in's NVML tells is known.
using CudaHealthOnFakes = FreshFakes;

TEST_F(CudaHealthOnFakes, LinksTellWhereTheyLeadAndHowFastTheyAre) {
  expectFine({{"GRADLINK_FAKE_GPUS", "2"}, {"GRADLINK_FAKE_NVLINK", "mesh"}}, [] {
    const GpuInfo info = gpuInfo(0);
    EXPECT_EQ(info.uuid.value_or("").rfind("GPU-", 0), 0u);
    ASSERT_TRUE(info.health);
    ASSERT_EQ(info.health->links.size(), 18u);
    for (const GpuLink& link : info.health->links) {
      EXPECT_TRUE(link.active);
      EXPECT_EQ(link.version, "4.0");
      EXPECT_EQ(link.bytesPerSecond, 26562e6);
      EXPECT_EQ(link.remotePciBusId, gpuInfo(1).pciBusId);
      EXPECT_FALSE(link.remoteIsSwitch);
      EXPECT_EQ(link.errors, 0u);
    }
    EXPECT_EQ(info.health->numaNode, 0);
    EXPECT_EQ(info.health->pcieGeneration, 5);
    EXPECT_EQ(info.health->pcieWidth, 16);
    EXPECT_EQ(info.health->throttleReasons, Names{});
    EXPECT_EQ(info.health->eccErrors, 0u);
    EXPECT_EQ(info.health->pcieReplays, 0u);
  });
}

TEST_F(CudaHealthOnFakes, LinksOfASwitchLeadToNoGpu) {
  expectFine({{"GRADLINK_FAKE_GPUS", "2"}, {"GRADLINK_FAKE_NVLINK", "switch"}}, [] {
    const GpuHealth health = gpuInfo(1).health.value();
    ASSERT_EQ(health.links.size(), 18u);
    for (const GpuLink& link : health.links) {
      EXPECT_TRUE(link.active);
      EXPECT_TRUE(link.remoteIsSwitch);
      EXPECT_FALSE(link.remotePciBusId);
    }
  });
}

TEST_F(CudaHealthOnFakes, LinksThatAreDownAreListedWithoutASpeed) {
  expectFine({{"GRADLINK_FAKE_GPUS", "2"},
              {"GRADLINK_FAKE_NVLINK", "mesh"},
              {"GRADLINK_FAKE_FAULTS", "links-down=0-1:3,pcie-width=0:8"}},
             [] {
               const GpuHealth health = gpuInfo(0).health.value();
               ASSERT_EQ(health.links.size(), 18u);
               int down = 0;
               for (const GpuLink& link : health.links) {
                 if (link.active) continue;
                 ++down;
                 EXPECT_FALSE(link.bytesPerSecond);
                 EXPECT_FALSE(link.remotePciBusId);
               }
               EXPECT_EQ(down, 3);
               EXPECT_EQ(health.pcieWidth, 8);
               EXPECT_EQ(health.maxPcieWidth, 16);
             });
}

TEST_F(CudaHealthOnFakes, AThrottledGpuSaysWhy) {
  expectFine({{"GRADLINK_FAKE_GPUS", "2"}, {"GRADLINK_FAKE_FAULTS", "throttle=1"}}, [] {
    EXPECT_EQ(gpuInfo(0).health.value().throttleReasons, Names{});
    const auto reasons = gpuInfo(1).health.value().throttleReasons;
    ASSERT_TRUE(reasons);
    EXPECT_FALSE(reasons->empty());
  });
}

TEST_F(CudaHealthOnFakes, AnXidIsToldOnceAndOfItsGpuAlone) {
  expectFine({{"GRADLINK_FAKE_GPUS", "2"}, {"GRADLINK_FAKE_FAULTS", "xid=1:79,xid=1:48"}}, [] {
    const std::string first = gpuInfo(0).pciBusId;
    const std::string second = gpuInfo(1).pciBusId;
    EXPECT_TRUE(gpuXids(first).empty());
    EXPECT_TRUE(gpuXids(second).empty());
    EXPECT_TRUE(gpuXids(first).empty());
    EXPECT_EQ(gpuXids(second), (std::vector<int>{79, 48}));
    EXPECT_TRUE(gpuXids(second).empty());
  });
}

TEST_F(CudaHealthOnFakes, AnNvmlWithoutEventsTellsNoXids) {
  expectFine({{"GRADLINK_FAKE_FAULTS", "xid=0:79,missing=nvmlEventSetWait_v2"}}, [] {
    EXPECT_TRUE(gpuXids(gpuInfo(0).pciBusId).empty());
    EXPECT_TRUE(gpuXids(gpuInfo(0).pciBusId).empty());
  });
}

TEST_F(CudaHealthOnFakes, AnOlderNvmlIsAskedByTheOlderName) {
  expectFine(
      {{"GRADLINK_FAKE_GPUS", "1"},
       {"GRADLINK_FAKE_FAULTS", "throttle=0,missing=nvmlDeviceGetCurrentClocksEventReasons"}},
      [] {
        const auto reasons = gpuInfo(0).health.value().throttleReasons;
        ASSERT_TRUE(reasons);
        EXPECT_FALSE(reasons->empty());
      });
}

TEST_F(CudaHealthOnFakes, WhatOneFunctionDoesNotTellLeavesTheOthers) {
  expectFine({{"GRADLINK_FAKE_FAULTS",
               "missing=nvmlDeviceGetPowerUsage,missing=nvmlDeviceGetNvLinkState"}},
             [] {
               const GpuHealth health = gpuInfo(0).health.value();
               EXPECT_FALSE(health.powerW);
               EXPECT_TRUE(health.links.empty());
               EXPECT_TRUE(health.temperatureC);
               EXPECT_TRUE(health.pcieWidth);
             });
}

TEST_F(CudaHealthOnFakes, AnNvmlThatDoesNotStartIsNoError) {
  expectFine({{"GRADLINK_FAKE_FAULTS", "nvml-absent"}}, [] {
    EXPECT_FALSE(gpuInfo(0).health);
    EXPECT_TRUE(gpuLibraries().nvmlMissing);
  });
}

}  // namespace
}  // namespace gradlink::cuda
