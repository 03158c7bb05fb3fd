// NativeDeviceBuffer: an array in a GPU's memory, or a part of one.
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

/// The memory of a buffer, shared with its slices.
struct DeviceBlock {
  cuda::Device* device;
  std::size_t bytes;
  /// Holds `data`; null after dispose().
  std::shared_ptr<void> memory;
  void* data;
  /// How its communicator registered it with NCCL, or null.
  const char* registration = nullptr;
};

class DeviceBufferWrap : public Napi::ObjectWrap<DeviceBufferWrap> {
 public:
  static void define(Napi::Env, Napi::Object exports);
  /// The wrap of a NativeDeviceBuffer; null for any other value.
  static DeviceBufferWrap* of(const Napi::Value&);

  /// A buffer of the whole block.
  static Napi::Object make(Napi::Env, DeviceBlock, DType, std::size_t count);

  explicit DeviceBufferWrap(const Napi::CallbackInfo&);
  ~DeviceBufferWrap() override;

  int device() const;
  DType dtype() const { return dtype_; }
  std::size_t length() const { return length_; }
  /// Whether dispose() was called on this buffer or on the owner of its memory.
  bool disposed() const;
  /// Null if disposed or empty.
  void* data() const;
  /// "a DeviceBuffer of 4 float32 on gpu:0", for messages.
  std::string description() const;
  /// Keeps the memory beyond a dispose(); null if disposed.
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
  /// Not a slice: dispose() frees the memory.
  bool owns_ = false;
  bool disposed_ = false;
};

/// Holds the memory of many buffers across calls without checking each: reading hundreds of them
/// from a cold cache takes longer than a GPU takes to add them. A dispose() makes it check again.
class HeldBuffers {
 public:
  /// The buffers outlive this.
  explicit HeldBuffers(std::vector<DeviceBufferWrap*> buffers);
  ~HeldBuffers();
  HeldBuffers(const HeldBuffers&) = delete;
  HeldBuffers& operator=(const HeldBuffers&) = delete;

  /// Keeps all memory beyond a dispose(); null if one is disposed.
  std::shared_ptr<void> hold();

  /// Called for each dispose(), from any thread.
  static void lookAnew();

 private:
  const std::vector<DeviceBufferWrap*> buffers_;
  std::shared_ptr<void> memory_;
};

}  // namespace gradlink::binding
