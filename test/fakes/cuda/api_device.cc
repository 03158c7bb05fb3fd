// Start, devices, contexts and peers.
#include <cctype>
#include <cstdio>
#include <cstring>

#include "cuda/context.h"
#include "cuda/control.h"
#include "cuda/cost.h"
#include "cuda/exports.h"
#include "cuda/memory.h"
#include "support/export.h"

namespace gradlink::fake {
namespace {

constexpr int kDriverVersion = 13000;
constexpr int kL2Bytes = 50 << 20;
constexpr int kCopyEngines = 3;

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

const StatusText* textOf(Status status) {
  for (const StatusText& text : kTexts) {
    if (text.status == status) return &text;
  }
  return nullptr;
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
  *version = kDriverVersion;
  return kOk;
}

FAKE_EXPORT(Status, cuGetErrorName, (Status status, const char** name)) {
  const StatusText* text = textOf(status);
  *name = text ? text->name : nullptr;
  return text ? kOk : kInvalidValue;
}

FAKE_EXPORT(Status, cuGetErrorString, (Status status, const char** string)) {
  const StatusText* text = textOf(status);
  *string = text ? text->text : nullptr;
  return text ? kOk : kInvalidValue;
}

FAKE_EXPORT(Status, cuDeviceGetCount, (int* count)) {
  if (const Status status = enter()) return status;
  *count = static_cast<int>(Machine::get().visible().size());
  return kOk;
}

FAKE_EXPORT(Status, cuDeviceGet, (DeviceHandle * device, int ordinal)) {
  if (const Status status = enter()) return status;
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
  switch (attribute) {
    case 1:
      *value = 1024;
      break;  // threads of a block
    case 13:
      *value = Machine::kClockKHz;
      break;
    case 16:
      *value = Machine::kMultiprocessors;
      break;
    case 19:
      *value = 1;
      break;  // can map host memory
    case 32:
      *value = 1;
      break;  // ECC
    case 33:
      *value = static_cast<int>(Machine::get().gpu(device).bus);
      break;
    case 34:
      *value = 0;
      break;  // PCI device
    case 20:  // compute mode
      *value = hasFault("prohibited", std::to_string(contextOfDevice(device)->device())) ? 2
               : fault("exclusive")                                                      ? 3
                                                                                         : 0;
      break;
    case 36:
      *value = Machine::kMemoryClockKHz;
      break;
    case 37:
      *value = Machine::kMemoryBusBits;
      break;
    case 38:
      *value = kL2Bytes;
      break;
    case 39:  // threads of a multiprocessor
      *value = static_cast<int>(faultNumber("multiprocessor-threads").value_or(2048));
      break;
    case 40:
      *value = kCopyEngines;
      break;
    case 41:
      *value = 1;
      break;  // unified addressing
    case 50:
      *value = 0;
      break;  // PCI domain
    case 75:
      *value = Machine::computeCapability() / 10;
      break;
    case 76:
      *value = Machine::computeCapability() % 10;
      break;
    default:
      return kInvalidValue;
  }
  return kOk;
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

FAKE_EXPORT(Status, cuDevicePrimaryCtxRelease_v2, (DeviceHandle device)) {
  return enterDevice(device);
}

FAKE_EXPORT(Status, cuCtxSetCurrent, (ContextHandle handle)) {
  if (const Status status = enter()) return status;
  Context* const context = contextOf(handle);
  if (handle && !context) return kInvalidContext;
  setCurrentContext(context);
  return kOk;
}

FAKE_EXPORT(Status, cuCtxGetCurrent, (ContextHandle * context)) {
  if (const Status status = enter()) return status;
  *context = handleOf(currentContext());
  return kOk;
}

FAKE_EXPORT(Status, cuCtxSynchronize, ()) {
  Context* context = nullptr;
  if (const Status status = enter(context)) return status;
  context->synchronize();
  return context->status();
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
  const bool access = Machine::get().canReach(from, to);
  switch (attribute) {
    case 1:
      *value = access && joinedByNvLink(from, to) ? 0 : 1;
      break;  // performance rank
    case 2:
      *value = access ? 1 : 0;
      break;
    case 3:
      *value = access && joinedByNvLink(from, to) ? 1 : 0;
      break;  // atomics
    case 4:
      *value = access ? 1 : 0;
      break;  // arrays
    default:
      return kInvalidValue;
  }
  return kOk;
}

FAKE_EXPORT(Status, cuCtxEnablePeerAccess, (ContextHandle handle, unsigned flags)) {
  Context* context = nullptr;
  if (const Status status = enter(context)) return status;
  const Context* const peer = contextOf(handle);
  if (flags != 0) return kInvalidValue;
  if (!peer || peer == context) return kInvalidContext;
  if (!Machine::get().canReach(context->device(), peer->device())) return kPeerUnsupported;
  if (context->reaches(peer->device())) return kPeerEnabled;
  if (hasFault("peer-refused",
               std::to_string(context->device()) + ">" + std::to_string(peer->device()))) {
    return kPeerUnsupported;
  }
  if (context->enabled() >= faultNumber("peer-limit").value_or(Machine::get().count())) {
    return kTooManyPeers;
  }
  context->enable(peer->device());
  return kOk;
}

FAKE_EXPORT(Status, cuCtxDisablePeerAccess, (ContextHandle handle)) {
  Context* context = nullptr;
  if (const Status status = enter(context)) return status;
  const Context* const peer = contextOf(handle);
  if (!peer || peer == context) return kInvalidContext;
  if (!context->reaches(peer->device())) return kPeerNotEnabled;
  context->disable(peer->device());
  return kOk;
}

}  // namespace gradlink::fake
