// Libraries that are looked for when they are first needed: the driver, NVML, NCCL.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradlink::cuda {

struct LibrarySpec {
  /// "the CUDA driver": how messages call it.
  std::string what;
  /// "libcuda.so.1".
  std::string file;
  /// The environment variable that names another file; then only that one is tried.
  std::string variable;
  /// Folders to try after the loader's own.
  std::vector<std::string> folders;
  /// What to do without it: "install the NVIDIA driver".
  std::string remedy;
};

/// A loaded library. Stays loaded for the life of the process, as what it started may still run.
class SharedLibrary {
 public:
  /// Throws Error(backendUnavailable) that says which file was looked for, where, what the loader
  /// said and what to do.
  explicit SharedLibrary(const LibrarySpec&);

  /// Null where the library has no such symbol.
  void* find(const char* symbol) const;
  template <class Function>
  void bind(Function*& member, const char* symbol) const {
    member = reinterpret_cast<Function*>(find(symbol));
  }
  /// The path of the file that was loaded.
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
