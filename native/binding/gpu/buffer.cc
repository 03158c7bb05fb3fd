#include "binding/gpu/buffer.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/gpu/queue.h"
#include "cuda/memory.h"

namespace gradlink::binding {

namespace {

constexpr const char* kDeviceBufferClass = "NativeDeviceBuffer";
/// Distinguishes our objects from others with the same prototype.
constexpr napi_type_tag kTag = {0x6772616c696e6b67, 0x9c1f4ad20b7e4e35};
/// Bytes that fill() writes from the host; the rest is doubled on the device.
constexpr std::size_t kFillBytes = 64 << 10;

std::size_t bytesOf(Napi::Env env, std::size_t count, DType dtype) {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, sizeOf(dtype), &bytes)) {
    throw argumentError(env, "count", "a count that fits in memory", std::to_string(count));
  }
  return bytes;
}

/// `bytes` of repeated `element`, at most kFillBytes.
std::vector<std::byte> repeated(const void* element, std::size_t size, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(element);
  std::vector<std::byte> all(std::min(bytes, kFillBytes));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = first[i % size];
  return all;
}

void fillFrom(cuda::Stream& stream, const std::vector<std::byte>& pattern, void* to,
              std::size_t bytes) {
  if (std::all_of(pattern.begin(), pattern.end(), [](std::byte one) { return one == std::byte(); }))
    return stream.zero(to, bytes);
  auto* target = static_cast<std::byte*>(to);
  stream.copy(target, pattern.data(), pattern.size());
  for (std::size_t filled = pattern.size(); filled < bytes;) {
    const std::size_t next = std::min(filled, bytes - filled);
    stream.copy(target + filled, target, next);
    filled += next;
  }
}

}  // namespace

struct DeviceBufferWrap::Made {
  std::shared_ptr<DeviceBlock> block;
  DType dtype;
  std::size_t begin;
  std::size_t length;
  /// Undefined for the buffer that owns the memory.
  Napi::Value owner;
};

void DeviceBufferWrap::define(Napi::Env env, Napi::Object exports) {
  using Wrap = DeviceBufferWrap;
  const Napi::Function constructor =
      DefineClass(env, kDeviceBufferClass,
                  {
                      StaticMethod<&Wrap::alloc>("alloc"),
                      InstanceAccessor<&Wrap::isDisposed>("disposed"),
                      InstanceMethod<&Wrap::slice>("slice"),
                      InstanceMethod<&Wrap::copyFrom>("copyFrom"),
                      InstanceMethod<&Wrap::copyTo>("copyTo"),
                      InstanceMethod<&Wrap::fill>("fill"),
                      InstanceMethod<&Wrap::dispose>("dispose"),
                  });
  Environment::of(env).setConstructor(kDeviceBufferClass, constructor);
  exports.Set(kDeviceBufferClass, constructor);
}

DeviceBufferWrap* DeviceBufferWrap::of(const Napi::Value& value) {
  if (!value.IsObject()) return nullptr;
  bool tagged = false;
  if (napi_check_object_type_tag(value.Env(), value, &kTag, &tagged) != napi_ok || !tagged) {
    return nullptr;
  }
  return Unwrap(value.As<Napi::Object>());
}

Napi::Object DeviceBufferWrap::make(Napi::Env env, Made made) {
  return Environment::of(env)
      .constructor(kDeviceBufferClass)
      .New({Napi::External<Made>::New(env, &made)});
}

Napi::Object DeviceBufferWrap::make(Napi::Env env, DeviceBlock block, DType dtype,
                                    std::size_t count) {
  return make(env,
              {std::make_shared<DeviceBlock>(std::move(block)), dtype, 0, count, env.Undefined()});
}

DeviceBufferWrap::DeviceBufferWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsExternal()) throw argumentError(env, kDeviceBufferClass, "a call of alloc", "new");
  const Made& made = *info[0].As<Napi::External<Made>>().Data();
  block_ = made.block;
  dtype_ = made.dtype;
  begin_ = made.begin;
  length_ = made.length;
  owns_ = made.owner.IsUndefined();
  Napi::Object self = info.This().As<Napi::Object>();
  const auto number = [env](std::size_t value) {
    return Napi::Number::New(env, static_cast<double>(value));
  };
  const auto field = [](const char* name, Napi::Value value) {
    return Napi::PropertyDescriptor::Value(name, value, napi_enumerable);
  };
  // Own values, no accessors: every operation compares them. `buffer` keeps a slice's owner.
  self.DefineProperties(
      {field("device", Napi::Number::New(env, device())),
       field("dtype", Napi::Number::New(env, static_cast<int>(dtype_))),
       field("length", number(length_)), field("byteOffset", number(begin_ * sizeOf(dtype_))),
       field("byteLength", number(bytes())),
       field("registration", block_->registration == nullptr
                                 ? env.Null()
                                 : Napi::Value(Napi::String::New(env, block_->registration))),
       field("buffer", owns_ ? self : made.owner)});
  if (napi_type_tag_object(env, self, &kTag) != napi_ok) throw Napi::Error::New(env);
  if (owns_) {
    const auto size = static_cast<std::int64_t>(block_->bytes);
    Napi::MemoryManagement::AdjustExternalMemory(env, size);
  }
}

DeviceBufferWrap::~DeviceBufferWrap() {
  if (owns_) release();
}

void DeviceBufferWrap::release() {
  if (!block_->memory) return;
  HeldBuffers::lookAnew();
  block_->memory.reset();
  Napi::MemoryManagement::AdjustExternalMemory(Env(), -static_cast<std::int64_t>(block_->bytes));
}

int DeviceBufferWrap::device() const { return block_->device->ordinal(); }

bool DeviceBufferWrap::disposed() const { return disposed_ || !block_->memory; }

void* DeviceBufferWrap::data() const {
  if (disposed() || length_ == 0) return nullptr;
  return static_cast<std::byte*>(block_->data) + begin_ * sizeOf(dtype_);
}

std::string DeviceBufferWrap::description() const {
  return std::string("a DeviceBuffer of ") + std::to_string(length_) + " " + nameOf(dtype_) +
         " on gpu:" + std::to_string(device());
}

std::shared_ptr<void> DeviceBufferWrap::hold() const { return block_->memory; }

Napi::Value DeviceBufferWrap::alloc(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    const int ordinal = static_cast<int>(integerArg(info[0], "device", 0, kMaxInt));
    const DType dtype = gpuDTypeArg(info[1]);
    const std::size_t count = countArg(info[2], "count");
    const std::size_t bytes = bytesOf(env, count, dtype);
    cuda::Device& device = cuda::Device::get(ordinal);
    auto memory = std::make_shared<cuda::DeviceMemory>(device, bytes);
    void* const data = memory->data();
    return make(env, {&device, bytes, std::move(memory), data}, dtype, count);
  });
}

Napi::Value DeviceBufferWrap::isDisposed(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), disposed());
}

Napi::Value DeviceBufferWrap::slice(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto length = static_cast<std::int64_t>(length_);
  const std::int64_t begin = integerArg(info[0], "begin", 0, length);
  const std::int64_t end = integerArg(info[1], "end", begin, length);
  const Napi::Value owner = Value().Get("buffer");
  return make(env, {block_, dtype_, begin_ + static_cast<std::size_t>(begin),
                    static_cast<std::size_t>(end - begin), owner});
}

Napi::Value DeviceBufferWrap::start(Napi::Env env, const char* what,
                                    std::function<void(cuda::Stream&)> launch, Kept kept) {
  keep(kept, Value());
  GpuQueue& queue = Environment::of(env).area<GpuQueues>().of(*block_->device);
  return PendingOp::start(
      env, queue.queue(), [&queue, what, launch = std::move(launch)] { queue.run(what, launch); },
      {}, std::move(kept));
}

Napi::Value DeviceBufferWrap::copyFrom(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    const BufferView to = viewOn(device(), Value(), dtype_, "the target");
    const BufferView from = viewOfAny(info[0], dtype_, "from");
    if (from.length != to.length) {
      throw argumentError(env, "from", std::to_string(to.length) + " elements",
                          std::to_string(from.length));
    }
    Kept kept;
    keep(kept, info[0]);
    cuda::Device& device = *block_->device;
    cuda::Device* source = from.device == kHost || from.device == device.ordinal()
                               ? nullptr
                               : &cuda::Device::get(from.device);
    const std::size_t size = bytes();
    return start(
        env, "copyFrom",
        [to = to.data, from = from.data, size, &device, source](cuda::Stream& stream) {
          if (size == 0) return;
          if (source == nullptr) return stream.copy(to, from, size);
          // Otherwise the driver stages the copy through the host.
          device.enablePeer(*source);
          stream.copyPeer(to, device, from, *source, size);
        },
        std::move(kept));
  });
}

Napi::Value DeviceBufferWrap::copyTo(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    const BufferView from = viewOn(device(), Value(), dtype_, "the source");
    const BufferView to = viewOf(info[0], dtype_, "to");
    if (from.length != to.length) {
      throw argumentError(env, "to", std::to_string(from.length) + " elements",
                          std::to_string(to.length));
    }
    Kept kept;
    keep(kept, info[0]);
    return start(
        env, "copyTo",
        [to = to.data, from = from.data, size = bytes()](cuda::Stream& stream) {
          if (size != 0) stream.copy(to, from, size);
        },
        std::move(kept));
  });
}

Napi::Value DeviceBufferWrap::fill(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    const BufferView to = viewOn(device(), Value(), dtype_, "the target");
    auto pattern = std::make_shared<const std::vector<std::byte>>(
        repeated(memoryOf(info[0], dtype_, 1, "value"), sizeOf(dtype_), bytes()));
    return start(env, "fill",
                 [to = to.data, pattern, size = bytes()](cuda::Stream& stream) {
                   if (size != 0) fillFrom(stream, *pattern, to, size);
                 },
                 {});
  });
}

Napi::Value DeviceBufferWrap::dispose(const Napi::CallbackInfo& info) {
  disposed_ = true;
  HeldBuffers::lookAnew();
  if (owns_) release();
  return info.Env().Undefined();
}

namespace {

/// Of all threads. Never destroyed.
struct AllHeld {
  std::mutex mutex;
  std::unordered_set<HeldBuffers*> held;

  static AllHeld& get() {
    static AllHeld& all = *new AllHeld;
    return all;
  }
};

}  // namespace

HeldBuffers::HeldBuffers(std::vector<DeviceBufferWrap*> buffers) : buffers_(std::move(buffers)) {
  AllHeld& all = AllHeld::get();
  const std::lock_guard lock(all.mutex);
  all.held.insert(this);
}

HeldBuffers::~HeldBuffers() {
  AllHeld& all = AllHeld::get();
  const std::lock_guard lock(all.mutex);
  all.held.erase(this);
}

std::shared_ptr<void> HeldBuffers::hold() {
  const std::lock_guard lock(AllHeld::get().mutex);
  if (memory_) return memory_;
  auto memory = std::make_shared<std::vector<std::shared_ptr<void>>>();
  memory->reserve(buffers_.size());
  for (const DeviceBufferWrap* buffer : buffers_) {
    if (buffer->disposed()) return nullptr;
    memory->push_back(buffer->hold());
  }
  return memory_ = std::move(memory);
}

void HeldBuffers::lookAnew() {
  AllHeld& all = AllHeld::get();
  // Freed without the lock.
  std::vector<std::shared_ptr<void>> let;
  const std::lock_guard lock(all.mutex);
  for (HeldBuffers* one : all.held) {
    if (one->memory_) let.push_back(std::move(one->memory_));
  }
}

}  // namespace gradlink::binding
