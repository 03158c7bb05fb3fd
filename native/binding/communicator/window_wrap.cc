#include "binding/communicator/window_wrap.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/communicator/communicator_wrap.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "binding/external_memory.h"
#include "binding/gpu/buffer.h"
#include "binding/pending_op.h"
#include "core/error.h"
#include "nccl/nccl.h"

namespace gradlink::binding {
namespace {

constexpr const char* kWindowClass = "NativeWindow";

struct SpecArguments {
  Napi::Value data;
  Napi::Value sources;
  Napi::Value destinations;
  Napi::Value array;
};

WindowSpec specArg(const SpecArguments& given, DType dtype, bool zeroInit, int device, int size) {
  const BufferView data = viewOn(device, given.data, dtype, "data");
  WindowSpec spec;
  if (device != kHost) {
    static_cast<void>(memoryOf(given.array, dtype, data.length, "array", device));
    const DeviceBufferWrap& array = *DeviceBufferWrap::of(given.array);
    // The memory lives as long as the window, even if the program disposes of the array before.
    spec.array = {array.hold(), array.data()};
  }
  spec.count = data.length;
  spec.dtype = dtype;
  spec.initial = data.data;
  spec.zeroInit = zeroInit;
  spec.sources = ranksArg(given.sources, "sources", size);
  spec.destinations = ranksArg(given.destinations, "destinations", size);
  return spec;
}

/// The numbers of lib/native/window.ts.
enum class WindowOp { put, accumulate, get, update };

/// One operation, read on the JavaScript thread: (op, array or null, ranks, weights, selfWeight,
/// divisor, reset, withP, timeoutMs).
class WindowCall {
 public:
  WindowCall(const Napi::CallbackInfo& info, const OpenWindow& at, Kept* kept)
      : op_(static_cast<WindowOp>(integerArg(info[0], "op", 0, 3))) {
    if (!info[1].IsNull()) {
      array_ = memoryOf(info[1], at.dtype, at.count, "array", at.device);
      if (kept != nullptr) keep(*kept, info[1]);
    } else if (op_ == WindowOp::put || op_ == WindowOp::accumulate) {
      array_ = at.open().data();
    }
    const int size = at.handle->open().size();
    const std::vector<int> ranks = ranksArg(info[2], "ranks", size);
    const auto* weights =
        static_cast<const double*>(memoryOf(info[3], DType::float64, ranks.size(), "weights"));
    for (std::size_t i = 0; i < ranks.size(); ++i) peers_.push_back({ranks[i], weights[i]});
    selfWeight_ = numberArg(info[4], "selfWeight");
    divisor_ = countArg(info[5], "divisor");
    if (divisor_ == 0) throw argumentError(info.Env(), "divisor", "1 or more", "0");
    reset_ = booleanArg(info[6], "reset");
    withP_ = booleanArg(info[7], "withP");
    timeoutMs_ = numberArg(info[8], "timeoutMs");
  }

  void operator()(Window& window) const {
    const Deadline deadline = Deadline::in(timeoutMs_);
    switch (op_) {
      case WindowOp::put:
      case WindowOp::accumulate:
        return window.put(array_, peers_, selfWeight_, op_ == WindowOp::accumulate, withP_,
                          deadline);
      case WindowOp::get:
        return window.get(peers_, withP_, deadline);
      case WindowOp::update:
        return window.update(array_, selfWeight_, peers_, divisor_, reset_, withP_, deadline);
    }
  }

 private:
  WindowOp op_;
  void* array_ = nullptr;
  std::vector<Neighbor> peers_;
  double selfWeight_;
  std::size_t divisor_;
  bool reset_;
  bool withP_;
  double timeoutMs_;
};

}  // namespace

OpenWindow::OpenWindow(std::shared_ptr<CommunicatorHandle> from, std::unique_ptr<Window> made,
                       DType type, std::size_t length, int gpu)
    : handle(std::move(from)),
      window(made.release(), [on = handle->share()](Window* gone) { delete gone; }),
      dtype(type),
      count(length),
      device(gpu) {}

Window& OpenWindow::open() const {
  if (window == nullptr) throw Error(ErrorCode::closed, "the window's communicator was closed");
  return *window;
}

void OpenWindow::end(Napi::Env env) {
  shown.takeBack(env);
  window.reset();
}

void exportWindow(Napi::Env env, Napi::Object exports) { WindowWrap::define(env, exports); }

void WindowWrap::define(Napi::Env env, Napi::Object exports) {
  using Wrap = WindowWrap;
  const Napi::Function constructor = DefineClass(
      env, kWindowClass,
      {StaticMethod<&Wrap::open>("open"), StaticMethod<&Wrap::openHeld>("openHeld"),
       InstanceMethod<&Wrap::memory>("memory"), InstanceMethod<&Wrap::run>("run"),
       InstanceMethod<&Wrap::runSync>("runSync"), InstanceMethod<&Wrap::versions>("versions"),
       InstanceMethod<&Wrap::p>("p"), InstanceMethod<&Wrap::tryLock>("tryLock"),
       InstanceMethod<&Wrap::unlock>("unlock"), InstanceMethod<&Wrap::free>("free"),
       InstanceMethod<&Wrap::timeoutMs>("timeoutMs")});
  Environment::of(env).setConstructor(kWindowClass, constructor);
  exports.Set(kWindowClass, constructor);
}

WindowWrap::WindowWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  if (!info[0].IsExternal()) {
    throw argumentError(info.Env(), kWindowClass, "a call of NativeWindow.open", "new");
  }
  open_ = *info[0].As<Napi::External<std::shared_ptr<OpenWindow>>>().Data();
}

Napi::Value WindowWrap::made(Napi::Env env, std::shared_ptr<OpenWindow> window) {
  window->handle->add(window);
  return Environment::of(env)
      .constructor(kWindowClass)
      .New({Napi::External<std::shared_ptr<OpenWindow>>::New(env, &window)});
}

Napi::Value WindowWrap::openHeld(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    auto handle = CommunicatorWrap::unwrap(info[0]);
    const int size = handle->open().size();
    const DType dtype = dtypeArg(info[1]);
    const Napi::Array list = arrayArg(info[2], "windows");
    const bool zeroInit = booleanArg(info[3], "zeroInit");
    const CallOptions options{numberArg(info[4], "timeoutMs")};
    const std::vector<int> gpus(handle->gpus().begin(), handle->gpus().end());
    if (list.Length() != gpus.size()) {
      throw argumentError(env, "windows", std::to_string(gpus.size()) + " of them",
                          std::to_string(list.Length()));
    }
    Kept kept;
    keep(kept, info[0]);
    std::vector<WindowSpec> specs;
    for (std::uint32_t i = 0; i < list.Length(); ++i) {
      const Napi::Object one = objectArg(list.Get(i), "window");
      specs.push_back(
          specArg({one.Get("data"), one.Get("sources"), one.Get("destinations"), one.Get("array")},
                  dtype, zeroInit, gpus[i], size));
      keep(kept, one.Get("data"));
    }
    std::vector<std::size_t> counts(specs.size());
    std::transform(specs.begin(), specs.end(), counts.begin(),
                   [](const WindowSpec& spec) { return spec.count; });
    CommunicatorHandle* raw = handle.get();
    auto opened = std::make_shared<std::vector<std::unique_ptr<Window>>>();
    return PendingOp::start(
        env, handle->queue(),
        [raw, opened, specs = std::move(specs), options] {
          *opened = gpuRanks(raw->communicator(), "createWindow").openWindows(specs, options);
        },
        [opened, weak = std::weak_ptr<CommunicatorHandle>(handle), dtype, counts,
         gpus](Napi::Env at) -> Napi::Value {
          Napi::Array windows = Napi::Array::New(at, opened->size());
          for (std::uint32_t i = 0; i < windows.Length(); ++i) {
            windows.Set(i,
                        made(at, std::make_shared<OpenWindow>(weak.lock(), std::move((*opened)[i]),
                                                              dtype, counts[i], gpus[i])));
          }
          return windows;
        },
        std::move(kept));
  });
}

Napi::Value WindowWrap::open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    auto handle = CommunicatorWrap::unwrap(info[0]);
    const int size = handle->open().size();
    if (handle->communicator().heldRanks().size() != 1) {
      throw argumentError(env, "communicator", "one that holds one rank", "another");
    }
    const DType dtype = dtypeArg(info[1]);
    const auto gpus = handle->gpus();
    const int device = gpus.empty() ? kHost : gpus[0];
    WindowSpec spec = specArg({info[2], info[4], info[5], info[7]}, dtype,
                              booleanArg(info[3], "zeroInit"), device, size);
    const std::size_t length = spec.count;
    const CallOptions options{numberArg(info[6], "timeoutMs")};
    Kept kept;
    keep(kept, info[0]);
    keep(kept, info[2]);
    CommunicatorHandle* raw = handle.get();
    auto opened = std::make_shared<std::unique_ptr<Window>>();
    return PendingOp::start(
        env, handle->queue(),
        [raw, opened, spec = std::move(spec), options] {
          *opened = raw->communicator().openWindow(spec, options);
        },
        [opened, weak = std::weak_ptr<CommunicatorHandle>(handle), dtype, length,
         device](Napi::Env at) -> Napi::Value {
          return made(at, std::make_shared<OpenWindow>(weak.lock(), std::move(*opened), dtype,
                                                       length, device));
        },
        std::move(kept));
  });
}

Napi::Value WindowWrap::memory(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const std::size_t bytes = std::max<std::size_t>(open_->count * sizeOf(open_->dtype), 1);
    return arrayBufferOver(env, open_->window, open_->open().data(), bytes, "createWindow",
                           &open_->shown);
  });
}

Napi::Value WindowWrap::run(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Kept kept;
    WindowCall call(info, *open_, &kept);
    kept.push_back(Napi::Persistent(Value()));
    return PendingOp::start(
        info.Env(), open_->handle->queue(),
        [raw = open_.get(), call = std::move(call)] { call(raw->open()); }, {}, std::move(kept));
  });
}

Napi::Value WindowWrap::runSync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const WindowCall call(info, *open_, nullptr);
    open_->handle->runNow([&](Communicator&) { call(open_->open()); });
    return info.Env().Undefined();
  });
}

Napi::Value WindowWrap::versions(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto counts = open_->open().versions();
    Napi::Array list = Napi::Array::New(info.Env(), counts.size());
    for (std::uint32_t i = 0; i < counts.size(); ++i) {
      list.Set(i, static_cast<double>(counts[i]));
    }
    return list;
  });
}

Napi::Value WindowWrap::p(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return Napi::Number::New(info.Env(), open_->open().p()); });
}

Napi::Value WindowWrap::timeoutMs(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return Napi::Number::New(info.Env(), open_->handle->communicator().timeoutMs());
  });
}

Napi::Value WindowWrap::tryLock(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const int last = open_->handle->open().size() - 1;
    const auto owner = static_cast<int>(integerArg(info[0], "owner", 0, last));
    const auto other = static_cast<int>(integerArg(info[1], "other", 0, last));
    return Napi::Number::New(info.Env(), open_->open().tryLock(owner, other));
  });
}

Napi::Value WindowWrap::unlock(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    // A closed window has released its locks.
    if (open_->window == nullptr) return info.Env().Undefined();
    const int last = open_->handle->communicator().size() - 1;
    const auto owner = static_cast<int>(integerArg(info[0], "owner", 0, last));
    const auto other = static_cast<int>(integerArg(info[1], "other", 0, last));
    open_->window->unlock(owner, other);
    return info.Env().Undefined();
  });
}

Napi::Value WindowWrap::free(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    open_->handle->open();
    const CallOptions options{numberArg(info[0], "timeoutMs")};
    Kept kept;
    kept.push_back(Napi::Persistent(Value()));
    return PendingOp::start(
        info.Env(), open_->handle->queue(),
        [raw = open_.get(), options] { raw->open().free(options); },
        [raw = open_.get()](Napi::Env at) -> Napi::Value {
          raw->end(at);
          return at.Undefined();
        },
        std::move(kept));
  });
}

}  // namespace gradlink::binding
