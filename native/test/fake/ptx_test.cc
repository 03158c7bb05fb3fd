// The interpreter of PTX against values that are known; what the package's own kernels compute is
// compared with the host's by their tests, see "ptx." in sources.cmake.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>

#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

constexpr std::uint32_t kNan = 0x7fc00000;

/// What memory of 64 bytes the kernels of these cases see.
struct Ran {
  Result result;
  alignas(16) std::uint64_t words[8];
};

Ran runBody(const std::string& body) {
  const std::string text =
      ".version 6.3\n.target sm_75\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n"
      "ld.param.u64 %rd1, [k_param_0];\n" +
      body + "\nret;\n}\n";
  const Programs programs = parse(text);
  Ran ran{};
  const auto begin = reinterpret_cast<std::uint64_t>(ran.words);
  std::vector<std::byte> parameters(sizeof begin);
  std::memcpy(parameters.data(), &begin, sizeof begin);
  ran.result = run(programs.at("k"), 1, 1, parameters, [begin](std::uint64_t) {
    return Range{begin, sizeof ran.words};
  });
  return ran;
}

/// The first word after the instruction, which writes %rd2.
std::uint64_t of(const std::string& instruction) {
  const Ran ran = runBody(instruction + "\nst.global.u64 [%rd1], %rd2;");
  EXPECT_EQ(ran.result.outcome, Outcome::done) << ran.result.message;
  return ran.words[0];
}

std::string f32(float value) {
  char text[16];
  std::snprintf(text, sizeof text, "0f%08x", std::bit_cast<std::uint32_t>(value));
  return text;
}
std::string f32(std::uint32_t bits) { return f32(std::bit_cast<float>(bits)); }
std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(Ptx, AddsAndMultipliesIntegersAsTheirTypesDo) {
  EXPECT_EQ(of("add.s32 %rd2, -1, 2;"), 1U);
  EXPECT_EQ(of("mul.lo.s32 %rd2, 65536, 65536;") & 0xffffffff, 0U);
  EXPECT_EQ(of("mul.wide.u32 %rd2, -1, 2;"), 0x1fffffffeU);
  EXPECT_EQ(of("mul.wide.s32 %rd2, -1, 2;"), ~std::uint64_t{1});
  EXPECT_EQ(of("mul.hi.u64 %rd2, -1, -1;"), ~std::uint64_t{1});
  EXPECT_EQ(of("mad.lo.s64 %rd2, 3, 4, 5;"), 17U);
  EXPECT_EQ(of("div.s64 %rd2, -7, 2;"), static_cast<std::uint64_t>(-3));
  EXPECT_EQ(of("rem.u32 %rd2, 7, 4;"), 3U);
  EXPECT_EQ(of("min.s64 %rd2, -1, 1;"), ~std::uint64_t{0});
  EXPECT_EQ(of("min.u64 %rd2, -1, 1;"), 1U);
  EXPECT_EQ(runBody("div.u32 %r1, 1, 0;").result.outcome, Outcome::failed);
}

TEST(Ptx, ShiftsBeyondTheWidth) {
  EXPECT_EQ(of("shl.b32 %rd2, 1, 31;"), 0x80000000U);
  EXPECT_EQ(of("shl.b32 %rd2, 1, 32;"), 0U);
  EXPECT_EQ(of("shr.u64 %rd2, -1, 64;"), 0U);
  EXPECT_EQ(of("shr.s64 %rd2, -4, 1;"), static_cast<std::uint64_t>(-2));
  EXPECT_EQ(of("shr.s64 %rd2, -4, 200;"), ~std::uint64_t{0});
}

TEST(Ptx, MovesFieldsAndBytes) {
  EXPECT_EQ(of("bfi.b64 %rd2, 5, 1, 32, 32;"), 0x500000001U);
  EXPECT_EQ(of("bfe.u32 %rd2, 0x12345678, 8, 8;"), 0x56U);
  EXPECT_EQ(of("prmt.b32 %rd2, 0x33221100, 0x77665544, 0x7610;"), 0x77661100U);
  EXPECT_EQ(of("prmt.b32 %rd2, 0x80, 0, 0x8888;"), 0xffffffffU);
  EXPECT_EQ(of("mov.b64 %rd2, {1, 2};"), 0x200000001U);
}

TEST(Ptx, RoundsFloatsToTheNearest) {
  EXPECT_EQ(of("add.rn.f32 %rd2, " + f32(16777216.0F) + ", " + f32(1.0F) + ";"), bits(16777216.0F));
  EXPECT_EQ(of("add.rn.f32 %rd2, " + f32(16777216.0F) + ", " + f32(3.0F) + ";"), bits(16777220.0F));
  EXPECT_EQ(of("div.rn.f32 %rd2, " + f32(1.0F) + ", " + f32(3.0F) + ";"), 0x3eaaaaabU);
  EXPECT_EQ(of("sqrt.rn.f32 %rd2, " + f32(2.0F) + ";"), 0x3fb504f3U);
  // Denormals stay.
  EXPECT_EQ(of("mul.rn.f32 %rd2, " + f32(0x00800000U) + ", " + f32(0.5F) + ";"), 0x00400000U);
  // One rounding where a product and a sum have two.
  EXPECT_EQ(of("fma.rn.f32 %rd2, 0f3f800001, 0f3f800001, 0fbf800002;"), 0x28800000U);
}

TEST(Ptx, KeepsTheRulesOfWhatIsNoNumber) {
  EXPECT_EQ(of("max.f32 %rd2, " + f32(kNan) + ", " + f32(1.0F) + ";"), bits(1.0F));
  EXPECT_EQ(of("min.f32 %rd2, " + f32(0.0F) + ", " + f32(-0.0F) + ";"), bits(-0.0F));
  EXPECT_EQ(of("add.rn.f32 %rd2, " + f32(kNan) + ", " + f32(1.0F) + ";"), 0x7fffffffU);
  for (const auto& [how, holds] : {std::pair("lt", 0), {"ltu", 1}, {"neu", 1}, {"ne", 0}}) {
    EXPECT_EQ(of("setp." + std::string(how) + ".f32 %p1, " + f32(kNan) + ", " + f32(1.0F) +
                 ";\nselp.u64 %rd2, 1, 0, %p1;"),
              static_cast<std::uint64_t>(holds))
        << how;
  }
}

TEST(Ptx, Converts) {
  EXPECT_EQ(of("cvt.rn.f16.f32 %rd2, " + f32(65519.0F) + ";"), 0x7bffU);
  EXPECT_EQ(of("cvt.rn.f16.f32 %rd2, " + f32(65520.0F) + ";"), 0x7c00U);
  EXPECT_EQ(of("cvt.rn.f16.f32 %rd2, " + f32(0x1p-24F) + ";"), 1U);
  EXPECT_EQ(of("cvt.rn.f16.f32 %rd2, " + f32(0x1p-25F) + ";"), 0U);
  EXPECT_EQ(of("mov.u16 %rs1, 1;\ncvt.f32.f16 %rd2, %rs1;"), bits(0x1p-24F));
  EXPECT_EQ(of("mov.u16 %rs1, 0xfc00;\ncvt.f32.f16 %rd2, %rs1;"), 0xff800000U);
  EXPECT_EQ(of("cvt.rn.bf16.f32 %rd2, 0f3f808000;"), 0x3f80U);
  EXPECT_EQ(of("cvt.s64.s8 %rd2, 0xff;"), ~std::uint64_t{0});
  EXPECT_EQ(of("cvt.u64.u32 %rd2, -1;"), 0xffffffffU);
  EXPECT_EQ(of("cvt.rzi.u32.f32 %rd2, " + f32(-1.5F) + ";"), 0U);
  EXPECT_EQ(of("cvt.rzi.u32.f32 %rd2, " + f32(1e20F) + ";"), 0xffffffffU);
  EXPECT_EQ(of("cvt.rni.u32.f32 %rd2, " + f32(2.5F) + ";"), 2U);
  EXPECT_EQ(of("cvt.rzi.u32.f32 %rd2, " + f32(kNan) + ";"), 0U);
}

TEST(Ptx, JumpsAndGuards) {
  EXPECT_EQ(of("mov.u64 %rd2, 0;\nL: add.s64 %rd2, %rd2, 1;\nsetp.lt.u64 %p1, %rd2, 10;\n"
               "@%p1 bra L;\n@!%p1 add.s64 %rd2, %rd2, 100;\n@%p1 mov.u64 %rd2, 7;"),
            110U);
  // As nvcc writes a condition that is always true, and its opposite.
  EXPECT_EQ(of("mov.pred %p1, -1;\nnot.pred %p2, %p1;\nselp.u64 %rd2, 1, 0, %p2;"), 0U);
}

TEST(Ptx, LoadsAndStoresVectorsAndAddsAtomically) {
  const Ran ran = runBody(
      "st.global.v4.u32 [%rd1+16], {1, 2, 3, 4};\nld.global.nc.v2.u64 {%rd3, %rd4}, [%rd1+16];\n"
      "st.v2.u64 [%rd1+32], {%rd4, %rd3};\natom.global.add.u64 %rd5, [%rd1+16], 5;\n"
      "st.global.u64 [%rd1], %rd5;");
  EXPECT_EQ(ran.result.outcome, Outcome::done) << ran.result.message;
  EXPECT_EQ(ran.words[0], 0x200000001U);
  EXPECT_EQ(ran.words[2], 0x200000006U);
  EXPECT_EQ(ran.words[4], 0x400000003U);
  EXPECT_EQ(ran.words[5], 0x200000001U);
}

TEST(Ptx, FindsAccessesThatAreMisalignedOrOutside) {
  const Ran vector = runBody("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+8];");
  EXPECT_EQ(vector.result.outcome, Outcome::misaligned);
  EXPECT_NE(vector.result.message.find("k, line 8, \"ld.global.v4.u32"), std::string::npos)
      << vector.result.message;
  EXPECT_EQ(runBody("st.global.u8 [%rd1+63], 1;").result.outcome, Outcome::done);
  EXPECT_EQ(runBody("st.global.u8 [%rd1+64], 1;").result.outcome, Outcome::illegalAddress);
  EXPECT_EQ(runBody("ld.global.u64 %rd2, [%rd1+-8];").result.outcome, Outcome::illegalAddress);
}

TEST(Ptx, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"frob.s32 %r1, %r2;", "add.rn.ftz.f32 %f1, %f2, %f3;", "sqrt.approx.f32 %f1, %f2;",
        "bar.sync 0;", "bra nowhere;", "ld.shared.u32 %r1, [%r2];", "mov.u32 %r1, %laneid.y;"}) {
    EXPECT_THROW(runBody(text), BadPtx) << text;
  }
}

}  // namespace
}  // namespace gradlink::fake::ptx
