#include "binding/gpu/info.h"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "nccl/nccl.h"

namespace gradlink::binding {

namespace {

Napi::Array listOf(Napi::Env env, const std::vector<std::string>& texts) {
  const Napi::Array list = Napi::Array::New(env, texts.size());
  for (std::uint32_t i = 0; i < texts.size(); ++i) list.Set(i, texts[i]);
  return list;
}

template <class Value>
Napi::Value valueOf(Napi::Env env, const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    return Napi::Boolean::New(env, value);
  } else if constexpr (std::is_arithmetic_v<Value>) {
    return Napi::Number::New(env, static_cast<double>(value));
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return Napi::String::New(env, value);
  } else {
    return listOf(env, value);
  }
}

template <class Value>
Napi::Value valueOf(Napi::Env env, const std::optional<Value>& value) {
  return value ? valueOf(env, *value) : env.Null();
}

class Fields {
 public:
  explicit Fields(Napi::Env env) : env_(env), object_(Napi::Object::New(env)) {}

  template <class Value>
  Fields& set(const char* name, const Value& value) {
    object_.Set(name, valueOf(env_, value));
    return *this;
  }
  Fields& set(const char* name, Napi::Value value) {
    object_.Set(name, value);
    return *this;
  }
  Napi::Object object() const { return object_; }

 private:
  Napi::Env env_;
  Napi::Object object_;
};

Napi::Object linkObject(Napi::Env env, const cuda::GpuLink& link) {
  return Fields(env)
      .set("index", link.index)
      .set("active", link.active)
      .set("version", link.version)
      .set("bytesPerSecond", link.bytesPerSecond)
      .set("remotePciBusId", link.remotePciBusId)
      .set("remoteIsSwitch", link.remoteIsSwitch)
      .set("errors", link.errors)
      .object();
}

struct Nccl {
  std::optional<std::string> file;
  std::optional<std::string> version;
  std::optional<std::string> missing;
  bool float8 = false;
  std::optional<std::string> registers;
  bool registerOff = false;

  Nccl() {
    try {
      const nccl::LibraryInfo& info = nccl::libraryInfo();
      file = info.file;
      version = nccl::versionText(info.version);
      float8 = info.float8;
      if (info.registration) registers = info.windows ? "symmetric" : "local";
      registerOff = info.registersNothing;
    } catch (const Error& error) {
      missing = error.what();
    }
  }
};

}  // namespace

Napi::Object toObject(Napi::Env env, const cuda::GpuHealth& health) {
  const Napi::Array links = Napi::Array::New(env, health.links.size());
  for (std::uint32_t i = 0; i < health.links.size(); ++i) {
    links.Set(i, linkObject(env, health.links[i]));
  }
  return Fields(env)
      .set("numaNode", health.numaNode)
      .set("pcieGeneration", health.pcieGeneration)
      .set("pcieWidth", health.pcieWidth)
      .set("maxPcieGeneration", health.maxPcieGeneration)
      .set("maxPcieWidth", health.maxPcieWidth)
      .set("smClockMHz", health.smClockMHz)
      .set("maxSmClockMHz", health.maxSmClockMHz)
      .set("memoryClockMHz", health.memoryClockMHz)
      .set("temperatureC", health.temperatureC)
      .set("powerW", health.powerW)
      .set("utilizationPercent", health.utilizationPercent)
      .set("throttleReasons", health.throttleReasons)
      .set("eccErrors", health.eccErrors)
      .set("pcieReplays", health.pcieReplays)
      .set("c2cLinks", health.c2cLinks)
      .set("links", Napi::Value(links))
      .object();
}

Napi::Object toObject(Napi::Env env, const cuda::GpuInfo& info) {
  return Fields(env)
      .set("ordinal", info.ordinal)
      .set("name", info.name)
      .set("uuid", info.uuid)
      .set("pciBusId", info.pciBusId)
      .set("memoryBytes", info.memoryBytes)
      .set("computeCapability", info.computeCapability)
      .set("kernels", info.kernels)
      .set("computeMode", info.computeMode)
      .set("multiprocessors", info.multiprocessors)
      .set("l2Bytes", info.l2Bytes)
      .set("copyEngines", info.copyEngines)
      .set("memoryBusBits", info.memoryBusBits)
      .set("memoryClockKHz", info.memoryClockKHz)
      .set("health", info.health ? Napi::Value(toObject(env, *info.health)) : env.Null())
      .object();
}

Napi::Object toObject(Napi::Env env, const cuda::GpuPeer& peer) {
  return Fields(env)
      .set("access", peer.access)
      .set("performanceRank", peer.performanceRank)
      .set("path", peer.path)
      .object();
}

Napi::Object toObject(Napi::Env env, const cuda::InstalledGpu& gpu) {
  return Fields(env)
      .set("pciBusId", gpu.pciBusId)
      .set("name", gpu.name)
      .set("uuid", gpu.uuid)
      .set("isPartitioned", gpu.isPartitioned)
      .object();
}

Napi::Object toObject(Napi::Env env, const cuda::GpuLibraries& libraries) {
  const Nccl nccl;
  return Fields(env)
      .set("driverFile", libraries.driverFile)
      .set("driverVersion", libraries.driverVersion)
      .set("driverRelease", libraries.driverRelease)
      .set("nvmlFile", libraries.nvmlFile)
      .set("nvmlMissing", libraries.nvmlMissing)
      .set("isConfidential", libraries.isConfidential)
      .set("ncclFile", nccl.file)
      .set("ncclVersion", nccl.version)
      .set("ncclMissing", nccl.missing)
      .set("ncclFloat8", nccl.float8)
      .set("ncclRegisters", nccl.registers)
      .set("ncclRegisterOff", nccl.registerOff)
      .object();
}

}  // namespace gradlink::binding
