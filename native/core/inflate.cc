#include "core/inflate.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace gradlink {
namespace {

/// What ends the decompression of data that is none; never leaves this file.
struct Damaged {};

class Bits {
 public:
  explicit Bits(std::span<const char> data) : data_(data) {}

  unsigned take(unsigned count) {
    while (held_ < count) {
      kept_ |= std::uint32_t{byte()} << held_;
      held_ += 8;
    }
    const unsigned value = kept_ & ((1u << count) - 1);
    kept_ >>= count;
    held_ -= count;
    return value;
  }

  /// The next whole byte; bits of the one before are dropped by align().
  std::uint8_t byte() {
    if (at_ == data_.size()) throw Damaged();
    return static_cast<std::uint8_t>(data_[at_++]);
  }
  void align() { kept_ = held_ = 0; }

 private:
  std::span<const char> data_;
  std::size_t at_ = 0;
  std::uint32_t kept_ = 0;
  unsigned held_ = 0;
};

constexpr unsigned kLongestCode = 15;

/// A canonical Huffman code, given by the length of each symbol's code.
class Code {
 public:
  explicit Code(std::span<const std::uint8_t> lengths) : symbols_(lengths.size()) {
    for (const std::uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    std::array<std::size_t, kLongestCode + 2> next{};
    for (std::size_t i = 1; i <= kLongestCode; ++i) next[i + 1] = next[i] + counts_[i];
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] != 0) symbols_[next[lengths[i]]++] = static_cast<std::uint16_t>(i);
    }
  }

  unsigned read(Bits& bits) const {
    // Codes of one length are consecutive numbers, and begin where twice the shorter ones end.
    unsigned code = 0;
    unsigned first = 0;
    std::size_t index = 0;
    for (std::size_t length = 1; length <= kLongestCode; ++length) {
      code |= bits.take(1);
      if (code < first + counts_[length]) return symbols_[index + (code - first)];
      index += counts_[length];
      first = (first + counts_[length]) << 1;
      code <<= 1;
    }
    throw Damaged();
  }

 private:
  std::array<unsigned, kLongestCode + 1> counts_{};
  std::vector<std::uint16_t> symbols_;
};

constexpr std::size_t kLiterals = 288;
constexpr std::size_t kDistances = 30;
constexpr unsigned kEnd = 256;

class Inflation {
 public:
  Inflation(std::span<const char> data, std::size_t most) : bits_(data), most_(most) {}

  std::vector<char> run() {
    bool last = false;
    while (!last) {
      last = bits_.take(1) != 0;
      switch (bits_.take(2)) {
        case 0:
          stored();
          break;
        case 1:
          fixed();
          break;
        case 2:
          dynamic();
          break;
        default:
          throw Damaged();
      }
    }
    return std::move(out_);
  }

 private:
  void put(char byte) {
    if (out_.size() == most_) throw Damaged();
    out_.push_back(byte);
  }

  void stored() {
    bits_.align();
    const unsigned length = bits_.take(16);
    const unsigned inverse = bits_.take(16);
    if ((length ^ inverse) != 0xffffu) throw Damaged();
    for (unsigned i = 0; i < length; ++i) put(static_cast<char>(bits_.byte()));
  }

  void fixed() {
    std::array<std::uint8_t, kLiterals> lengths{};
    for (std::size_t i = 0; i < kLiterals; ++i) {
      lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    }
    std::array<std::uint8_t, kDistances> distances{};
    distances.fill(5);
    copies(Code(lengths), Code(distances));
  }

  void dynamic() {
    const std::size_t literals = bits_.take(5) + 257;
    const std::size_t distances = bits_.take(5) + 1;
    const std::size_t ordered = bits_.take(4) + 4;
    if (literals > kLiterals || distances > kDistances) throw Damaged();
    constexpr std::array<std::uint8_t, 19> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                     11, 4,  12, 3, 13, 2, 14, 1, 15};
    std::array<std::uint8_t, 19> ofLengths{};
    for (std::size_t i = 0; i < ordered; ++i) {
      ofLengths[kOrder[i]] = static_cast<std::uint8_t>(bits_.take(3));
    }
    const Code code(ofLengths);
    std::vector<std::uint8_t> lengths;
    while (lengths.size() < literals + distances) {
      const unsigned symbol = code.read(bits_);
      if (symbol < 16) {
        lengths.push_back(static_cast<std::uint8_t>(symbol));
        continue;
      }
      if (symbol == 16 && lengths.empty()) throw Damaged();
      const std::uint8_t repeated = symbol == 16 ? lengths.back() : 0;
      const unsigned times = symbol == 16   ? 3 + bits_.take(2)
                             : symbol == 17 ? 3 + bits_.take(3)
                                            : 11 + bits_.take(7);
      lengths.insert(lengths.end(), times, repeated);
    }
    if (lengths.size() != literals + distances) throw Damaged();
    const std::span<const std::uint8_t> all(lengths);
    copies(Code(all.first(literals)), Code(all.subspan(literals)));
  }

  /// Literals and copies of what came before, up to the block's end.
  void copies(const Code& literals, const Code& distances) {
    for (unsigned symbol = literals.read(bits_); symbol != kEnd; symbol = literals.read(bits_)) {
      if (symbol < kEnd) {
        put(static_cast<char>(symbol));
        continue;
      }
      const unsigned length = lengthOf(symbol - kEnd - 1);
      const std::size_t distance = distanceOf(distances.read(bits_));
      if (distance > out_.size()) throw Damaged();
      for (unsigned i = 0; i < length; ++i) put(out_[out_.size() - distance]);
    }
  }

  /// Eight lengths of their own, then four for each number of further bits; the last is 258 alone.
  unsigned lengthOf(unsigned index) {
    if (index > 28) throw Damaged();
    if (index == 28) return 258;
    if (index < 8) return 3 + index;
    const unsigned more = index / 4 - 1;
    return 3 + ((4 + index % 4) << more) + bits_.take(more);
  }
  /// Four distances of their own, then two for each number of further bits.
  std::size_t distanceOf(unsigned index) {
    if (index >= kDistances) throw Damaged();
    if (index < 4) return 1 + index;
    const unsigned more = index / 2 - 1;
    return 1 + ((2 + index % 2) << more) + bits_.take(more);
  }

  Bits bits_;
  std::size_t most_;
  std::vector<char> out_;
};

}  // namespace

std::optional<std::vector<char>> inflate(std::span<const char> data, std::size_t most) {
  try {
    return Inflation(data, most).run();
  } catch (const Damaged&) {
    return std::nullopt;
  }
}

}  // namespace gradlink
