#include "cuda/cubin.h"

#include <elf.h>

#include <cstring>

namespace gradlink::fake {
namespace {

/// Copied: an image need not lie at a multiple of anything.
template <class T>
T at(const char* image, std::size_t offset) {
  T value;
  std::memcpy(&value, image + offset, sizeof(T));
  return value;
}

}  // namespace

std::optional<Cubin> readCubin(const void* image) {
  const char* const file = static_cast<const char*>(image);
  if (std::strncmp(file, ELFMAG, SELFMAG) != 0) return std::nullopt;
  const auto header = at<Elf64_Ehdr>(file, 0);
  Cubin cubin;
  cubin.abi = header.e_ident[EI_ABIVERSION];
  // The second byte of the flags, since CUDA 13's form of the file.
  const unsigned shift = cubin.abi < kAbiOfCuda13 ? 0 : 8;
  cubin.architecture = static_cast<int>(header.e_flags >> shift & 0xffu);
  const auto section = [&](std::size_t index) {
    return at<Elf64_Shdr>(file, header.e_shoff + index * header.e_shentsize);
  };
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const char* const names = file + section(symbols.sh_link).sh_offset;
    for (std::size_t j = 0; j < symbols.sh_size / sizeof(Elf64_Sym); ++j) {
      const auto symbol = at<Elf64_Sym>(file, symbols.sh_offset + j * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
          ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL) {
        cubin.entries.emplace(names + symbol.st_name);
      }
    }
  }
  return cubin;
}

}  // namespace gradlink::fake
