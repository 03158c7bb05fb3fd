// Ranks as processes, which a test forks.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>

#include "shm/rendezvous/secret.h"
#include "shm/shm.h"
#include "test/child.h"
#include "test/shm/support.h"
#include "test/waiting.h"

namespace gradlink::test {

inline std::string freshName() {
  static int next = 0;
  return "processes-" + std::to_string(getpid()) + "-" + std::to_string(next++);
}

inline shm::JoinOptions optionsFor(const std::string& name, int rank, int size) {
  shm::JoinOptions options;
  options.job = "test";
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.timeoutMs = 20000;
  return options;
}

/// Where the ranks of a rendezvous find one another, as the list of sockets shows it.
inline std::string shownAddress(const std::string& name, int number = 0) {
  const shm::RendezvousAddress address(optionsFor(name, 0, 1), number);
  const auto* value = reinterpret_cast<const sockaddr_un*>(address.get());
  return "@" +
         std::string(value->sun_path + 1, address.length() - offsetof(sockaddr_un, sun_path) - 1);
}

/// Those of a file of the kernel that have this text.
inline std::vector<std::string> linesWith(const char* file, const std::string& text) {
  std::ifstream list(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(list, line);) {
    if (line.find(text) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

/// Sockets of a rendezvous: one that its leader listens at, and one more for each rank that has
/// found it.
inline int socketsOf(const std::string& name, int number = 0) {
  return static_cast<int>(linesWith("/proc/net/unix", shownAddress(name, number)).size());
}

using RankBody = std::function<std::string(Communicator&, int)>;

/// A process each, which is given its number.
inline std::vector<Child> startEach(int count, const std::function<std::string(int)>& body) {
  std::vector<Child> children;
  for (int i = 0; i < count; ++i) children.emplace_back([&body, i] { return body(i); });
  return children;
}
inline void expectFine(std::vector<Child> children) {
  for (Child& child : children) EXPECT_EQ(child.wait(), "");
}

inline std::vector<Child> startRanks(int size, const RankBody& body, std::size_t slotBytes = 0) {
  const std::string name = freshName();
  return startEach(size, [&](int r) {
    auto options = optionsFor(name, r, size);
    options.slotBytes = slotBytes;
    auto comm = shm::join(options);
    return body(*comm, r);
  });
}

inline std::vector<std::string> onRanks(int size, const RankBody& body, std::size_t slotBytes = 0) {
  auto children = startRanks(size, body, slotBytes);
  std::vector<std::string> results;
  for (Child& child : children) results.push_back(child.wait());
  return results;
}

inline void expectNone(const std::vector<std::string>& results) {
  for (auto& result : results) EXPECT_EQ(result, "");
}

inline void expectFine(std::initializer_list<Child*> children) {
  for (Child* child : children) EXPECT_EQ(child->wait(), "");
}

inline void expectThrew(const std::string& result, const std::string& code, int rank) {
  EXPECT_EQ(result.rfind("threw " + code + " rank " + std::to_string(rank) + ":", 0), 0u) << result;
}

}  // namespace gradlink::test
