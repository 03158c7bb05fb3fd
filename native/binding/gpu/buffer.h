// The JavaScript class NativeDeviceBuffer: an array in a GPU's memory, or a part of one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "core/kernels/dtype.h"
#include "cuda/stream.h"

namespace gradlink::binding {

/// What a buffer is of, and whose slices share it.
struct DeviceBlock {
  cuda::Device* device;
  std::size_t bytes;
  /// Holds `data`; null after dispose().
  std::shared_ptr<void> memory;
  void* data;
  /// How the communicator that allocated it has made it known to NCCL; null for not at all.
  const char* registration = nullptr;
};

class DeviceBufferWrap : public Napi::ObjectWrap<DeviceBufferWrap> {
 public:
  static void define(Napi::Env, Napi::Object exports);
  /// What a NativeDeviceBuffer wraps; null for any other value.
  static DeviceBufferWrap* of(const Napi::Value&);

  /// A buffer of the whole block.
  static Napi::Object make(Napi::Env, DeviceBlock, DType, std::size_t count);

  explicit DeviceBufferWrap(const Napi::CallbackInfo&);
  ~DeviceBufferWrap() override;

  int device() const;
  DType dtype() const { return dtype_; }
  std::size_t length() const { return length_; }
  /// dispose() was called here, or where the memory was allocated.
  bool disposed() const;
  /// Null when disposed, and for no elements.
  void* data() const;
  /// "a DeviceBuffer of 4 float32 on gpu:0": what came, for messages.
  std::string description() const;
  /// Holds the memory beyond a dispose(); null when disposed.
  std::shared_ptr<void> hold() const;

 private:
  struct Made;
  static Napi::Object make(Napi::Env, Made);

  static Napi::Value alloc(const Napi::CallbackInfo&);
  Napi::Value isDisposed(const Napi::CallbackInfo&);
  Napi::Value slice(const Napi::CallbackInfo&);
  Napi::Value copyFrom(const Napi::CallbackInfo&);
  Napi::Value copyTo(const Napi::CallbackInfo&);
  Napi::Value fill(const Napi::CallbackInfo&);
  Napi::Value dispose(const Napi::CallbackInfo&);

  std::size_t bytes() const { return length_ * sizeOf(dtype_); }
  void release();
  Napi::Value start(Napi::Env, const char* what, std::function<void(cuda::Stream&)> launch,
                    Kept kept);

  std::shared_ptr<DeviceBlock> block_;
  DType dtype_ = DType::uint8;
  /// In elements.
  std::size_t begin_ = 0;
  std::size_t length_ = 0;
  /// Not a slice: what ends with this object is the memory.
  bool owns_ = false;
  bool disposed_ = false;
};

/// The memory of many buffers, which is held from call to call without a look at each of them: a
/// cache that hundreds of them have left takes longer to read than a GPU takes to add them up. What
/// is disposed of is free all the same, since then it looks anew.
class HeldBuffers {
 public:
  /// The buffers outlive this.
  explicit HeldBuffers(std::vector<DeviceBufferWrap*> buffers);
  ~HeldBuffers();
  HeldBuffers(const HeldBuffers&) = delete;
  HeldBuffers& operator=(const HeldBuffers&) = delete;

  /// Holds all of it beyond a dispose(); null where one was disposed of.
  std::shared_ptr<void> hold();

  /// Whenever a buffer is disposed of, from any thread.
  static void lookAnew();

 private:
  const std::vector<DeviceBufferWrap*> buffers_;
  std::shared_ptr<void> memory_;
};

}  // namespace gradlink::binding
