#include "cuda/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

#include "core/environment.h"
#include "core/error.h"

namespace gradlink::cuda {
namespace {

/// The file of a handle, or the requested name if the loader does not know.
std::string pathOf(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0') {
    return map->l_name;
  }
  return asked;
}

}  // namespace

SharedLibrary::SharedLibrary(const LibrarySpec& spec) {
  const char* named = codeFromEnvironment(spec.variable.c_str());
  const bool isNamed = named != nullptr && named[0] != '\0';
  std::vector<std::string> candidates{isNamed ? named : spec.file};
  if (!isNamed) {
    for (const std::string& folder : spec.folders) candidates.push_back(folder + "/" + spec.file);
  }
  std::string reason;
  for (const std::string& candidate : candidates) {
    handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      file_ = pathOf(handle_, candidate);
      return;
    }
    const char* said = dlerror();
    const std::string text = said != nullptr ? said : "no reason given";
    // An existing file that cannot be loaded explains more than a missing one.
    const bool absent = text.find("No such file or directory") != std::string::npos;
    if (reason.empty() || !absent) reason = text;
  }
  if (isNamed) {
    throw Error(ErrorCode::backendUnavailable,
                spec.what + " is not available: " + spec.variable + " names '" + named +
                    "', which cannot be loaded (" + reason +
                    "): correct the variable, or unset it " + "to use " + spec.file);
  }
  std::vector<std::string> places{"the system's library folders"};
  places.insert(places.end(), spec.folders.begin(), spec.folders.end());
  throw Error(ErrorCode::backendUnavailable,
              spec.what + " is not available: " + spec.file +
                  " was looked for in LD_LIBRARY_PATH (" + variableText("LD_LIBRARY_PATH") +
                  ") and in " + listed(places) + " (" + reason + "): " + spec.remedy + ", or set " +
                  spec.variable + " to the file");
}

void* SharedLibrary::find(const char* symbol) const { return dlsym(handle_, symbol); }

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::string variableText(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::string(name) + " is not set";
  return std::string(name) + " is '" + value + "'";
}

}  // namespace gradlink::cuda
