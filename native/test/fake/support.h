// What the tests of the stand-ins share: the driver's raw functions, with all devices' contexts
// made, and functions on the host that streams run.
#pragma once

#include <future>
#include <memory>

#include "test/cuda/support.h"

namespace gradlink::cuda {

inline const Driver& driver() { return Driver::get(); }

/// A symbol of the loaded fake that native/cuda has no use for.
template <class Function>
Function* symbolOf(const char* name) {
  return reinterpret_cast<Function*>(
      dlsym(dlopen(driver().file.c_str(), RTLD_NOW | RTLD_NOLOAD), name));
}

inline ContextHandle contextOf(int device) {
  ContextHandle context = nullptr;
  EXPECT_EQ(driver().primaryContextRetain(&context, device), kSuccess);
  return context;
}
inline void use(int device) { EXPECT_EQ(driver().setCurrent(contextOf(device)), kSuccess); }

/// Of a device, which becomes the thread's current one.
class RawStream {
 public:
  explicit RawStream(int device = 0) : device_(device) {
    use(device);
    EXPECT_EQ(driver().streamCreate(&handle_, 1), kSuccess);
  }
  ~RawStream() { driver().streamDestroy(handle_); }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  StreamHandle handle() const { return handle_; }
  int device() const { return device_; }
  /// The function is kept until the process ends: graphs call it again.
  void run(std::function<void()> function) {
    using Launch = Status(StreamHandle, void (*)(void*), void*);
    auto* kept = new std::function<void()>(std::move(function));
    const auto call = [](void* data) { (*static_cast<std::function<void()>*>(data))(); };
    ASSERT_EQ(symbolOf<Launch>("cuLaunchHostFunc")(handle_, call, kept), kSuccess);
    keep().push_back(std::unique_ptr<std::function<void()>>(kept));
  }
  /// Until release() is called, the stream stands still.
  std::function<void()> hold() {
    auto gate = std::make_shared<std::promise<void>>();
    const std::shared_future<void> opened = gate->get_future().share();
    run([opened] { opened.wait(); });
    return [gate] { gate->set_value(); };
  }
  Status query() const { return driver().streamQuery(handle_); }
  Status synchronize() const { return driver().streamSynchronize(handle_); }

 private:
  static std::vector<std::unique_ptr<std::function<void()>>>& keep() {
    static auto& kept = *new std::vector<std::unique_ptr<std::function<void()>>>;
    return kept;
  }
  int device_;
  StreamHandle handle_ = nullptr;
};

class RawEvent {
 public:
  explicit RawEvent(int device = 0, unsigned flags = 0) {
    use(device);
    EXPECT_EQ(driver().eventCreate(&handle_, flags), kSuccess);
  }
  ~RawEvent() { driver().eventDestroy(handle_); }
  RawEvent(const RawEvent&) = delete;
  RawEvent& operator=(const RawEvent&) = delete;

  EventHandle handle() const { return handle_; }
  Status record(const RawStream& stream) const {
    return driver().eventRecord(handle_, stream.handle());
  }
  Status holds(const RawStream& stream) const {
    return driver().streamWaitEvent(stream.handle(), handle_, 0);
  }
  /// After both have been reached.
  double secondsSince(const RawEvent& earlier) const {
    float milliseconds = -1;
    EXPECT_EQ(driver().eventElapsedTime(&milliseconds, earlier.handle_, handle_), kSuccess);
    return milliseconds * 1e-3;
  }

 private:
  EventHandle handle_ = nullptr;
};

/// `bytes` bytes on a device, or page-locked for -1.
class RawMemory {
 public:
  RawMemory(int device, std::size_t bytes) : device_(device) {
    use(device < 0 ? 0 : device);
    if (device < 0) {
      void* host = nullptr;
      EXPECT_EQ(driver().hostAlloc(&host, bytes, 3), kSuccess);
      address_ = addressOf(host);
    } else {
      EXPECT_EQ(driver().memAlloc(&address_, bytes), kSuccess);
    }
  }
  ~RawMemory() {
    use(device_ < 0 ? 0 : device_);
    if (device_ < 0) {
      driver().hostFree(bytes());
    } else {
      driver().memFree(address_);
    }
  }
  RawMemory(const RawMemory&) = delete;
  RawMemory& operator=(const RawMemory&) = delete;

  Address address() const { return address_; }
  /// The fake's device memory is memory of the process, which its tests may look at.
  unsigned char* bytes() const { return reinterpret_cast<unsigned char*>(address_); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(address_);
  }

 private:
  int device_;
  Address address_ = 0;
};

inline Status copy(const RawMemory& to, const RawMemory& from, std::size_t bytes,
                   const RawStream& stream) {
  use(stream.device());
  return driver().copyAsync(to.address(), from.address(), bytes, stream.handle());
}

}  // namespace gradlink::cuda
