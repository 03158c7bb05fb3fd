// Libraries loaded at first use: the driver, NVML, NCCL.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradlink::cuda {

struct LibrarySpec {
  /// "the CUDA driver", for messages.
  std::string what;
  /// "libcuda.so.1".
  std::string file;
  /// The environment variable with another file, which is then the only one tried.
  std::string variable;
  /// Searched after the loader's own folders.
  std::vector<std::string> folders;
  /// The remedy: "install the NVIDIA driver".
  std::string remedy;
};

/// Never unloaded: its threads may still run.
class SharedLibrary {
 public:
  /// Throws Error(backendUnavailable): which file was searched where, the loader's text, a remedy.
  explicit SharedLibrary(const LibrarySpec&);

  /// Null if the symbol is missing.
  void* find(const char* symbol) const;
  template <class Function>
  void bind(Function*& member, const char* symbol) const {
    member = reinterpret_cast<Function*>(find(symbol));
  }
  const std::string& file() const { return file_; }

 private:
  void* handle_ = nullptr;
  std::string file_;
};

/// "a, b and c".
std::string listed(const std::vector<std::string>& words);

/// "NAME is not set" or "NAME is 'value'".
std::string variableText(const char* name);

}  // namespace gradlink::cuda
