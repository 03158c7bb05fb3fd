// Machine code that was made before is taken where it fits the GPU, PTX is compiled everywhere
// else; several GPUs compile at once.
#include "cuda/kernel_image.h"

#include <elf.h>

#include <cstring>
#include <filesystem>

#include "cuda/kernel_module.h"
#include "cuda/kernels_ptx.h"
#include "test/cuda/support.h"

namespace gradlink::cuda {
namespace {

/// Of a source of kernels, whose digest it gives.
std::vector<std::string> kernelsOfSource(const std::string& source, std::string& digest) {
  std::vector<std::string> kernels;
  for (const KernelCode& code : kernelCodes()) {
    if (code.source != source) continue;
    digest = code.digest;
    kernels.insert(kernels.end(), code.kernels.begin(), code.kernels.end());
  }
  return kernels;
}

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// As much of a cubin as says for whom it is and which kernels it has.
std::string cubinOf(const std::vector<std::string>& kernels, unsigned architecture, bool ofCuda13) {
  std::string names(1, '\0');
  std::string symbols;
  for (const std::string& kernel : kernels) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    append(symbols, symbol);
    names += kernel;
    names += '\0';
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_ABIVERSION] = ofCuda13 ? 8 : 7;
  header.e_flags = architecture << (ofCuda13 ? 8 : 0);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shoff = sizeof(header) + names.size() + symbols.size();
  Elf64_Shdr nameSection{};
  nameSection.sh_type = SHT_STRTAB;
  nameSection.sh_offset = sizeof(header);
  Elf64_Shdr symbolSection{};
  symbolSection.sh_type = SHT_SYMTAB;
  symbolSection.sh_offset = sizeof(header) + names.size();
  symbolSection.sh_size = symbols.size();
  std::string file;
  append(file, header);
  file += names + symbols;
  append(file, nameSection);
  append(file, symbolSection);
  return file;
}

/// Data of zlib's in one block that is not compressed, with its checksum (Adler-32).
std::string stored(const std::string& data) {
  const auto length = static_cast<std::uint16_t>(data.size());
  std::string file = "\x78\x01\x01";
  append(file, length);
  append(file, static_cast<std::uint16_t>(~length));
  file += data;
  std::uint32_t sum = 1;
  std::uint32_t sums = 0;
  for (const char byte : data) {
    sum = (sum + static_cast<unsigned char>(byte)) % 65521;
    sums = (sums + sum) % 65521;
  }
  for (const std::uint32_t part : {sums >> 8, sums, sum >> 8, sum}) {
    file += static_cast<char>(part & 0xff);
  }
  return file;
}

class KernelImageDeathTest : public FreshProcesses {
 protected:
  void SetUp() override {
    FreshProcesses::SetUp();
    if (!onFakes()) GTEST_SKIP() << "only the stand-in takes cubins without code";
    // The processes of a test run it from its start: they share the folder of the first.
    if (const char* const named = std::getenv(kFolder)) {
      folder_ = named;
      return;
    }
    std::string pattern = testing::TempDir() + "gradlink-cubins-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    setenv(kFolder, pattern.c_str(), 1);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
    unsetenv(kFolder);
  }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void writeCubins(unsigned architecture, bool ofCuda13 = true) const {
    const std::string end = ".sm_" + std::to_string(architecture) + ".cubin.z";
    for (const std::string source : {"kernels", "step_kernels"}) {
      std::string digest;
      const std::vector<std::string> kernels = kernelsOfSource(source, digest);
      write(source + "-" + digest + end, stored(cubinOf(kernels, architecture, ofCuda13)));
    }
  }
  /// Loads a module of each; where the kernels are from ends in `image`, before and after.
  void expectImage(const std::string& image, const std::string& faults) const {
    expectFine({{"GRADLINK_CUBINS", folder_.string()}, {"GRADLINK_FAKE_FAULTS", faults}}, [&] {
      Device& device = Device::get(0);
      const std::string before = kernelsOf(device);
      EXPECT_TRUE(before.ends_with(image)) << before;
      kernelModule(device, "sumFloat32");
      kernelModule(device, "stepAdam");
      EXPECT_EQ(kernelsOf(device), before);
    });
  }

  static constexpr const char* kFolder = "GRADLINK_TEST_CUBINS";
  std::filesystem::path folder_;
};

/// Fails whatever is compiled.
constexpr const char* kNothingCompiled = "jit=223";

TEST_F(KernelImageDeathTest, WithACubinNothingIsCompiled) {
  writeCubins(80);
  writeCubins(90);
  expectImage("cubin sm_90", kNothingCompiled);
}

TEST_F(KernelImageDeathTest, DriversOfCuda12TakeCubinsOfTheirForm) {
  writeCubins(90, false);
  for (const char* driver : {"12000", "13000"}) {
    expectImage("cubin sm_90", std::string(kNothingCompiled) + ",driver=" + driver);
  }
  writeCubins(90);
  expectFine({{"GRADLINK_CUBINS", folder_.string()}, {"GRADLINK_FAKE_FAULTS", "driver=12080"}}, [] {
    kernelModule(Device::get(0), "sumFloat32");
    const std::string image = kernelsOf(Device::get(0));
    EXPECT_EQ(test::lacking(image, {"PTX", "cubin sm_90"}), "") << image;
  });
}

TEST_F(KernelImageDeathTest, DriversBeforeCuda10RunNothing) {
  expectFine({{"GRADLINK_CUBINS", ""}, {"GRADLINK_FAKE_FAULTS", "driver=9020"}}, [] {
    EXPECT_EQ(test::lacking(kernelsOf(Device::get(0)), {"none: ", "CUDA 9.2", "CUDA 10.0"}), "");
    const std::string refused = test::messageOf(ErrorCode::backendUnavailable,
                                                [] { kernelModule(Device::get(0), "sumFloat32"); });
    EXPECT_EQ(test::lacking(refused, {"CUDA 9.2", "CUDA 10.0"}), "") << refused;
  });
}

TEST_F(KernelImageDeathTest, ACubinServesLaterMinorVersions) {
  writeCubins(80);
  writeCubins(100);
  expectImage("cubin sm_80", std::string(kNothingCompiled) + ",capability=89");
  expectImage("cubin sm_100", std::string(kNothingCompiled) + ",capability=103");
}

TEST_F(KernelImageDeathTest, OtherGpusCompile) {
  writeCubins(80);
  writeCubins(103);
  for (const char* other : {"50", "70", "75", "90", "100"}) {
    expectImage("PTX", std::string("capability=") + other);
  }
}

TEST_F(KernelImageDeathTest, WhatTheDriverRefusesIsCompiled) {
  writeCubins(90);
  expectFine({{"GRADLINK_CUBINS", folder_.string()}, {"GRADLINK_FAKE_FAULTS", "cubin=209"}}, [] {
    kernelModule(Device::get(0), "sumFloat32");
    const std::string image = kernelsOf(Device::get(0));
    EXPECT_EQ(test::lacking(image, {"PTX", "cubin sm_90", "CUDA_ERROR_NO_BINARY_FOR_GPU"}), "")
        << image;
  });
}

TEST_F(KernelImageDeathTest, DamagedCubinsAndThoseOfOtherKernelsAreNotLoaded) {
  write("kernels-0000000000000000.sm_90.cubin.z", "others");
  std::string digest;
  kernelsOfSource("step_kernels", digest);
  write("step_kernels-" + digest + ".sm_90.cubin.z", "damaged");
  expectFine({{"GRADLINK_CUBINS", folder_.string()}}, [] {
    EXPECT_TRUE(kernelsOf(Device::get(0)).ends_with("PTX"));
    kernelModule(Device::get(0), "stepAdam");
  });
}

TEST_F(KernelImageDeathTest, AllGpusCompileAtOnceAlsoWhatTheDriverRefuses) {
  writeCubins(90);
  for (const std::string& cubins : {std::string(), folder_.string()}) {
    expectFine({{"GRADLINK_CUBINS", cubins},
                {"GRADLINK_FAKE_GPUS", "3"},
                {"GRADLINK_FAKE_FAULTS", "jit-meets=3,cubin=209"}},
               [] { loadKernels(allDevices(), {"sumFloat32"}); });
  }
}

}  // namespace
}  // namespace gradlink::cuda
