// Start, devices, contexts and peers.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <optional>

#include "cuda/control.h"
#include "cuda/cost.h"
#include "cuda/exports.h"
#include "cuda/memory.h"

namespace gradlink::fake {
namespace {

struct StatusText {
  Status status;
  const char* name;
  const char* text;
};
constexpr StatusText kTexts[] = {
#define GRADLINK_FAKE_TEXT(constant, number, name, text) {number, name, text},
    GRADLINK_FAKE_STATUS(GRADLINK_FAKE_TEXT)
#undef GRADLINK_FAKE_TEXT
};

Status tell(Status status, const char* StatusText::*what, const char** to) {
  const auto* const found = std::ranges::find(kTexts, status, &StatusText::status);
  *to = found != std::end(kTexts) ? found->*what : nullptr;
  return *to ? kOk : kInvalidValue;
}

Context* contextOfDevice(DeviceHandle device) {
  const auto& contexts = World::get().contexts;
  if (device < 0 || device >= static_cast<int>(contexts.size())) return nullptr;
  return contexts[device].get();
}

Status enterDevice(DeviceHandle device) {
  if (const Status status = enter()) return status;
  return contextOfDevice(device) ? kOk : kInvalidDevice;
}

/// As the driver, which ends in a null and cuts off what does not fit.
void copyText(char* to, int length, const char* text) {
  if (length > 0) std::snprintf(to, static_cast<std::size_t>(length), "%s", text);
}

bool joinedByNvLink(int from, int to) {
  for (const NvLink& link : Machine::get().gpu(from).links) {
    if (link.active && (link.remote == to || link.remote == NvLink::kSwitch)) return true;
  }
  return false;
}

std::optional<int> attributeOf(int attribute, DeviceHandle device) {
  const bool prohibited = hasFault("prohibited", std::to_string(device));
  const std::pair<int, double> known[] = {
      {1, 1024},  // threads of a block
      {13, Machine::kClockKHz},
      {16, Machine::kMultiprocessors},
      {19, 1},  // can map host memory
      {20, prohibited           ? 2
           : fault("exclusive") ? 3
                                : 0},  // compute mode
      {32, 1},                         // ECC
      {33, Machine::get().gpu(device).bus},
      {34, 0},  // PCI device
      {36, Machine::kMemoryClockKHz},
      {37, Machine::kMemoryBusBits},
      {38, 50 << 20},                                              // L2
      {39, faultNumber("multiprocessor-threads").value_or(2048)},  // threads of one
      {40, 3},                                                     // copy engines
      {41, 1},                                                     // unified addressing
      {50, 0},                                                     // PCI domain
      {75, Machine::computeCapability() / 10},
      {76, Machine::computeCapability() % 10},
  };
  for (const auto& [key, value] : known) {
    if (key == attribute) return static_cast<int>(value);
  }
  return std::nullopt;
}

}  // namespace

FAKE_EXPORT(Status, cuInit, (unsigned flags)) {
  if (flags != 0) return kInvalidValue;
  if (const auto code = faultNumber("init")) return static_cast<Status>(*code);
  World& world = World::get();
  if (Machine::get().visible().empty()) return kNoDevice;
  world.initialized = true;
  return kOk;
}

FAKE_EXPORT(Status, cuDriverGetVersion, (int* version)) {
  *version = Machine::driverVersion();
  return kOk;
}

FAKE_EXPORT(Status, cuGetErrorName, (Status status, const char** name)) {
  return tell(status, &StatusText::name, name);
}

FAKE_EXPORT(Status, cuGetErrorString, (Status status, const char** string)) {
  return tell(status, &StatusText::text, string);
}

FAKE_DRIVER(cuDeviceGetCount, (int* count)) {
  *count = static_cast<int>(Machine::get().visible().size());
  return kOk;
}

FAKE_DRIVER(cuDeviceGet, (DeviceHandle * device, int ordinal)) {
  const std::vector<int> visible = Machine::get().visible();
  if (ordinal < 0 || ordinal >= static_cast<int>(visible.size())) return kInvalidDevice;
  *device = visible[ordinal];
  return kOk;
}

FAKE_EXPORT(Status, cuDeviceGetName, (char* name, int length, DeviceHandle device)) {
  if (const Status status = enterDevice(device)) return status;
  copyText(name, length, "gradlink fake GPU");
  return kOk;
}

FAKE_EXPORT(Status, cuDeviceGetUuid_v2, (Uuid * uuid, DeviceHandle device)) {
  if (const Status status = enterDevice(device)) return status;
  const std::array<unsigned char, 16> part = Machine::get().partUuid(device);
  std::memcpy(uuid->bytes, part.data(), part.size());
  return kOk;
}

FAKE_EXPORT(Status, cuDeviceGetUuid, (Uuid * uuid, DeviceHandle device)) {
  if (const Status status = enterDevice(device)) return status;
  std::memcpy(uuid->bytes, Machine::get().gpu(device).uuid, sizeof uuid->bytes);
  return kOk;
}

FAKE_EXPORT(Status, cuDeviceTotalMem_v2, (std::size_t * bytes, DeviceHandle device)) {
  if (const Status status = enterDevice(device)) return status;
  *bytes = Machine::get().gpu(device).memoryBytes;
  return kOk;
}

FAKE_EXPORT(Status, cuDeviceGetAttribute, (int* value, int attribute, DeviceHandle device)) {
  if (const Status status = enterDevice(device)) return status;
  const std::optional<int> known = attributeOf(attribute, device);
  if (known) *value = *known;
  return known ? kOk : kInvalidValue;
}

FAKE_EXPORT(Status, cuDeviceGetPCIBusId, (char* id, int length, DeviceHandle device)) {
  if (const Status status = enterDevice(device)) return status;
  // The driver writes capitals, where the kernel's folders and others do not.
  std::string text = Machine::get().gpu(device).pciBusId;
  for (char& letter : text) letter = static_cast<char>(std::toupper(letter));
  copyText(id, length, text.c_str());
  return kOk;
}

FAKE_EXPORT(Status, cuDevicePrimaryCtxRetain, (ContextHandle * context, DeviceHandle device)) {
  if (const Status status = enterDevice(device)) return status;
  Context* const primary = contextOfDevice(device);
  if (const Status status = primary->retain()) return status;
  *context = handleOf(primary);
  return kOk;
}

FAKE_DRIVER(cuCtxSetCurrent, (ContextHandle handle)) {
  Context* const context = contextOf(handle);
  if (handle && !context) return kInvalidContext;
  setCurrentContext(context);
  return kOk;
}

FAKE_DRIVER(cuCtxGetCurrent, (ContextHandle * context)) {
  *context = handleOf(currentContext());
  return kOk;
}

FAKE_IN_CONTEXT(cuCtxSynchronize, ()) {
  context.synchronize();
  return context.status();
}

FAKE_EXPORT(Status, cuDeviceCanAccessPeer, (int* can, DeviceHandle from, DeviceHandle to)) {
  if (const Status status = enterDevice(from)) return status;
  if (const Status status = enterDevice(to)) return status;
  *can = Machine::get().canReach(from, to) ? 1 : 0;
  return kOk;
}

FAKE_EXPORT(Status, cuDeviceGetP2PAttribute,
            (int* value, int attribute, DeviceHandle from, DeviceHandle to)) {
  if (const Status status = enterDevice(from)) return status;
  if (const Status status = enterDevice(to)) return status;
  if (from == to) return kInvalidDevice;
  constexpr int kPerformanceRank = 1;
  constexpr int kAtomics = 3;
  constexpr int kArrays = 4;
  if (attribute < kPerformanceRank || attribute > kArrays) return kInvalidValue;
  const bool access = Machine::get().canReach(from, to);
  const bool direct = access && joinedByNvLink(from, to);
  *value = attribute == kPerformanceRank ? !direct : attribute == kAtomics ? direct : access;
  return kOk;
}

FAKE_IN_CONTEXT(cuCtxEnablePeerAccess, (ContextHandle handle, unsigned flags)) {
  const Context* const peer = contextOf(handle);
  if (flags != 0) return kInvalidValue;
  if (!peer || peer == &context) return kInvalidContext;
  if (!Machine::get().canReach(context.device(), peer->device())) return kPeerUnsupported;
  if (context.reaches(peer->device())) return kPeerEnabled;
  if (hasFault("peer-refused",
               std::to_string(context.device()) + ">" + std::to_string(peer->device()))) {
    return kPeerUnsupported;
  }
  if (context.enabled() >= faultNumber("peer-limit").value_or(Machine::get().count())) {
    return kTooManyPeers;
  }
  context.enable(peer->device());
  return kOk;
}

FAKE_IN_CONTEXT(cuCtxDisablePeerAccess, (ContextHandle handle)) {
  const Context* const peer = contextOf(handle);
  if (!peer || peer == &context) return kInvalidContext;
  if (!context.reaches(peer->device())) return kPeerNotEnabled;
  context.disable(peer->device());
  return kOk;
}

}  // namespace gradlink::fake
