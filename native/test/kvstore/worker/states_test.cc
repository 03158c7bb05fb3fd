// States of optimizers in files: sharded over servers, whole again, cut anew.
#include <stdlib.h>
#include <sys/stat.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "kvstore/base/whole_file.h"
#include "kvstore/local/local_store.h"
#include "kvstore/worker/states.h"
#include "test/folder.h"
#include "test/kvstore/worker/support.h"
#include "test/thrown.h"

namespace gradlink::test {
namespace {

class DistStates : public testing::Test {
 protected:
  const std::string& folder() const { return folder_.path(); }
  std::string file() const { return folder_.file("model.states"); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  TestFolder folder_;
};

void writeText(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::trunc) << text;
}

void writeBytes(const std::string& file, const std::vector<std::uint8_t>& bytes) {
  writeText(file, std::string(bytes.begin(), bytes.end()));
}

constexpr std::size_t kSmall = 300;
constexpr std::size_t kBig = 100'000;
const OptimizerSpec kAdam = specOf("adam", {{"learningRate", 0.125}});

struct Keys {
  KeyId small;
  KeyId big;
};

/// Both keys with the values that `stored` has, one behind the other.
Keys makeKeys(Store& store, const Floats& stored) {
  const auto border = stored.begin() + kSmall;
  return {makeKey(store, "small", Floats(stored.begin(), border)),
          makeKey(store, "big", Floats(border, stored.end()))};
}

/// A few rounds with gradients that differ by element; what is stored after each, both keys in one.
std::vector<Floats> train(Store& store, const Keys& keys, int first, int rounds, float share) {
  std::vector<Floats> values;
  for (int round = first; round < first + rounds; ++round) {
    Floats stored;
    for (const auto& [key, count] : {std::pair{keys.small, kSmall}, std::pair{keys.big, kBig}}) {
      std::vector<Floats> in{Floats(count)};
      for (std::size_t i = 0; i < in[0].size(); ++i) {
        in[0][i] = share * static_cast<float>((i * 7 + static_cast<std::size_t>(round)) % 64);
      }
      std::vector<Floats> out{Floats(in[0].size())};
      pushPull(store, key, in, out);
      stored.insert(stored.end(), out[0].begin(), out[0].end());
    }
    values.push_back(stored);
  }
  return values;
}

void save(Store& store, const std::string& file, bool dump) {
  waitFor([&](auto ticket) { store.saveStates(file, dump, ticket); });
}

void load(Store& store, const std::string& file) {
  waitFor([&](auto ticket) { store.loadStates(file, ticket); });
}

DistJob jobOf(int workers, int servers) {
  DistJob job{.workers = workers, .servers = servers, .bigArrayBound = 1000};
  return job;
}

/// Trains with two workers and three servers, saves after three rounds, and returns what is stored
/// then and after two more.
std::pair<Floats, std::vector<Floats>> trainAndSave(const std::string& file, bool dump) {
  std::pair<Floats, std::vector<Floats>> values;
  expectNone(runDist(jobOf(2, 3), [&](Store& store, int rank) {
    const Keys keys = makeKeys(store, Floats(kSmall + kBig, 1));
    store.setOptimizer(Optimizer::create(kAdam));
    const auto before = train(store, keys, 0, 3, 0.5f);
    if (rank == 0) save(store, file, dump);
    meet(store);
    const auto after = train(store, keys, 3, 2, 0.5f);
    if (rank == 0) values = {before.back(), after};
  }));
  return values;
}

TEST_F(DistStates, GoOnBitForBitWithAnotherNumberOfServers) {
  const auto [middle, after] = trainAndSave(file(), true);
  EXPECT_EQ(files().size(), 4u) << "the manifest and a part of each server";
  for (const int servers : {1, 2, 5}) {
    expectNone(runDist(jobOf(2, servers), [&](Store& store, int) {
      const Keys keys = makeKeys(store, middle);
      load(store, file());  // the file has the optimizer
      EXPECT_EQ(train(store, keys, 3, 2, 0.5f), after) << servers << " servers";
    }));
  }
}

TEST_F(DistStates, ASecondSaveReplacesTheFirstWithItsParts) {
  trainAndSave(file(), true);
  const auto first = files();
  expectNone(runDist(jobOf(1, 2), [&](Store& store, int) {
    makeKeys(store, Floats(kSmall + kBig));
    load(store, file());
    save(store, file(), false);
  }));
  const auto second = files();
  EXPECT_EQ(second.size(), 3u);
  for (const std::string& name : second) {
    EXPECT_TRUE(name == "model.states" ||
                std::find(first.begin(), first.end(), name) == first.end())
        << name;
  }
}

TEST_F(DistStates, HaveTheUpdatesOfThePartThatHasMost) {
  std::vector<std::vector<std::uint8_t>> parts;
  for (const std::int64_t updates : {3, 7, 5}) {
    const auto optimizer = Optimizer::create(kAdam);
    optimizer->setNumUpdate(updates);
    parts.push_back(saveStates(*optimizer, {}, false));
  }
  dist::writeStateParts(file(), parts);
  EXPECT_EQ(dist::readStateParts(file()).numUpdate, 7);
}

TEST_F(DistStates, WithoutAPartTheyAreRefused) {
  dist::writeStateParts(file(), std::vector(3, std::vector<std::uint8_t>(20, 1)));
  for (const std::string& name : files()) {
    if (name.ends_with("-1of3")) std::filesystem::remove(folder() + "/" + name);
  }
  const std::string text =
      messageOf(ErrorCode::invalidArgument, [&] { dist::readStateParts(file()); });
  EXPECT_EQ(lacking(text, {"model.states"}), "") << text;
}

std::string checksumOf(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, hash);
  return digits;
}

TEST_F(DistStates, AForgedManifestLeadsNowhereElse) {
  const std::string precious = folder() + "/precious";
  // What the forged suffix names only leads out where a folder of this name is there.
  std::filesystem::create_directories(file() + ".x");
  const auto forge = [&](const std::string& suffix) {
    writeText(precious, "data");
    std::string text = "gradlink distributed optimizer states 1\npart " + suffix + " 4 " +
                       std::string(16, '0') + "\n";
    text += "end " + checksumOf(text) + "\n";
    writeText(file(), text);
  };
  for (const std::string& suffix :
       {std::string(".x/../precious"), "." + std::string(16, 'a') + "-0of1/../../precious",
        std::string("/../precious"), "." + std::string(16, 'a') + "-0of1x"}) {
    forge(suffix);
    const std::string text =
        messageOf(ErrorCode::invalidArgument, [&] { dist::readStateParts(file()); });
    EXPECT_EQ(lacking(text, {"'" + suffix + "'"}), "") << text;
    dist::writeStateParts(file(), {});
    EXPECT_TRUE(std::filesystem::exists(precious)) << suffix;
  }
}

TEST_F(DistStates, AreWrittenWhereALinkLeads) {
  const std::string link = folder() + "/link";
  std::filesystem::create_directory(folder() + "/real");
  std::filesystem::create_symlink("real/states", link);
  trainAndSave(link, true);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  const LoadedStates linked = dist::readStateParts(link);
  EXPECT_EQ(linked.states.size(), 2u);
  EXPECT_EQ(dist::readStateParts(folder() + "/real/states").states.size(), 2u);
  EXPECT_EQ(files(), (std::vector<std::string>{"link", "real"}));
  // Each file may be a link by itself.
  const std::filesystem::path elsewhere = folder() + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  for (const auto& entry : std::filesystem::directory_iterator(folder() + "/real")) {
    const std::string suffix =
        entry.path().filename().string().substr(std::string("states").size());
    if (suffix.empty()) continue;
    std::filesystem::rename(entry.path(), elsewhere / suffix);
    std::filesystem::create_symlink(elsewhere / suffix, link + suffix);
  }
  EXPECT_EQ(dist::readStateParts(link).states.size(), 2u);
}

TEST_F(DistStates, ALinkAtAPartsNameIsNotFollowed) {
  const std::string others = folder() + "/others";
  const std::vector<std::uint8_t> bytes(20, 1);
  writeFileAtomically(others, bytes);
  const std::vector<std::vector<std::uint8_t>> parts{std::vector<std::uint8_t>(30, 2)};
  dist::writeStateParts(file(), parts);
  std::string part;
  for (const std::string& name : files()) {
    if (name.ends_with("of1")) part = folder() + "/" + name;
  }
  std::filesystem::remove(part);
  std::filesystem::create_symlink("others", part);
  EXPECT_EQ(codeOf([&] { dist::writeStateParts(file(), parts); }), ErrorCode::invalidArgument);
  EXPECT_EQ(readWholeFile(others), bytes);
  EXPECT_TRUE(std::filesystem::is_symlink(part)) << "what the file before names is gone";
}

TEST_F(DistStates, WhatIsNoRegularFileIsLeftAlone) {
  const std::string fifo = folder() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::vector<std::vector<std::uint8_t>> parts{std::vector<std::uint8_t>(20)};
  for (const std::string& name : {fifo, folder()}) {
    EXPECT_EQ(codeOf([&] { writeFileAtomically(name, parts[0]); }), ErrorCode::invalidArgument);
    EXPECT_EQ(codeOf([&] { dist::writeStateParts(name, parts); }), ErrorCode::invalidArgument);
    EXPECT_THROW(dist::readStateParts(name), Error);
  }
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_EQ(files(), std::vector<std::string>{"fifo"});
}

TEST_F(DistStates, OfAKilledProcessLeaveNothingAfterTheNextSave) {
  char host[65] = "";
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  const std::string start = folder() + "/.model.states." + host + ".";
  const std::string dead = start + "2147483647.aaaaaa.partial";
  const std::string alive = start + std::to_string(getppid()) + ".aaaaaa.partial";
  for (const std::string& name : {dead, alive}) writeText(name, "half");
  writeFileAtomically(file(), std::vector<std::uint8_t>(20));
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(alive));
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(DistStates, EveryAlteredByteIsRefused) {
  expectNone(runDist(jobOf(1, 2), [&](Store& store, int) {
    const KeyId key = makeKey(store, "w", Floats(3, 1));
    store.setOptimizer(Optimizer::create(kAdam));
    std::vector<Floats> values{Floats(3, 1)};
    pushPull(store, key, values, values);
    save(store, file(), true);
  }));
  dist::readStateParts(file());
  std::size_t altered = 0;
  for (const std::string& name : files()) {
    const std::string path = folder() + "/" + name;
    const auto whole = readWholeFile(path);
    const auto refused = [&](std::vector<std::uint8_t> bytes, const char* how, std::size_t at) {
      if (bytes == whole) return;
      writeBytes(path, bytes);
      EXPECT_THROW(dist::readStateParts(file()), Error) << name << " " << how << " " << at;
      ++altered;
    };
    for (std::size_t at = 0; at < whole.size(); ++at) {
      auto bytes = whole;
      bytes[at] ^= static_cast<std::uint8_t>(1u << (at % 8));
      refused(bytes, "flipped", at);
      bytes = whole;
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), 0);
      refused(bytes, "zeros from", at);
      refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at)}, "cut", at);
    }
    auto longer = whole;
    longer.push_back('\n');
    refused(longer, "longer", whole.size());
    writeBytes(path, whole);
  }
  dist::readStateParts(file());
  EXPECT_GT(altered, 1000u);
}

}  // namespace
}  // namespace gradlink::test
