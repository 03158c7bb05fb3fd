#include "cuda/info.h"

#include "cuda/nvml.h"
#include "test/cuda/support.h"

namespace gradlink::cuda {
namespace {

using Names = std::vector<std::string>;

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

TEST_F(CudaHealthOnFakes, LinksOfASwitchLeadToNoGpuAndThoseThatAreDownNowhere) {
  expectFine({{"GRADLINK_FAKE_GPUS", "2"},
              {"GRADLINK_FAKE_NVLINK", "switch"},
              {"GRADLINK_FAKE_FAULTS", "links-down=0-1:2"}},
             [] {
               const GpuHealth health = gpuInfo(1).health.value();
               ASSERT_EQ(health.links.size(), 18u);
               for (const GpuLink& link : health.links) {
                 EXPECT_EQ(link.active, link.index > 1);
                 EXPECT_EQ(link.remoteIsSwitch, link.active);
                 EXPECT_EQ(link.bytesPerSecond.has_value(), link.active);
                 EXPECT_FALSE(link.remotePciBusId);
               }
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

TEST_F(CudaHealthOnFakes, MemoryErrorsAreThoseCorrectedAndThoseNot) {
  expectFine({{"GRADLINK_FAKE_FAULTS", "ecc-errors=0"}},
             [] { EXPECT_EQ(gpuInfo(0).health.value().eccErrors, 7u); });
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

}  // namespace
}  // namespace gradlink::cuda
