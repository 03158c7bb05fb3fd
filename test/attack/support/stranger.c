/*
 * A process that does not know a job's secret, at the address of one of its meetings: rubbish,
 * forged words and half of what a rank would say, over many connections at once, until standard
 * input ends.
 *
 *   stranger UID SEED ENOUGH ADDRESS
 *
 * UID is who it becomes, the address that of the list of sockets without its @. After ENOUGH
 * connections it says so; at the end it prints how many connections it made and how many packets it
 * sent.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { open_at_most = 300, head_bytes = 16, text_bytes = 1024, words = 10 };

static uint32_t state;

static uint32_t any(uint32_t bound) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state % bound;
}

struct packet {
  uint32_t word;
  int32_t rank, size, code;
  char text[text_bytes];
};

static int connect_to(const char* address) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  size_t length = strlen(address);
  if (length >= sizeof(name.sun_path)) return -1;
  memcpy(name.sun_path + 1, address, length);
  int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  if (connect(file, (struct sockaddr*)&name, bytes) == 0) return file;
  close(file);
  return -1;
}

/* Whether it went out: the other end may have hung up. */
static int send_packet(int file, struct packet* packet, size_t bytes) {
  struct iovec part = {packet, bytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  int passed[2] = {file, file};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(passed))];
  } control;
  memset(&control, 0, sizeof(control));
  if (any(4) == 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(passed));
    memcpy(CMSG_DATA(&control.header), passed, sizeof(passed));
  }
  return sendmsg(file, &message, MSG_NOSIGNAL) >= 0;
}

/* A few packets over one connection; how many went out. */
static int attack(int file) {
  int sent = 0;
  int times = (int)any(4);
  struct packet packet;
  memset(&packet, 0, sizeof(packet));
  /* What the leader says first, to be said back to it. */
  if (any(2) == 0) {
    struct pollfd watched = {file, POLLIN, 0};
    poll(&watched, 1, 5);
    if (recv(file, &packet, sizeof(packet), 0) < 0) memset(&packet, 0, sizeof(packet));
  }
  for (int i = 0; i < times; ++i) {
    packet.word = any(8) == 0 ? any(UINT32_MAX) : any(words);
    packet.rank = any(8) == 0 ? (int32_t)any(UINT32_MAX) : (int32_t)any(5) - 1;
    packet.size = any(8) == 0 ? (int32_t)any(UINT32_MAX) : 3;
    size_t bytes = head_bytes;
    switch (any(4)) {
      case 0:
        bytes = any(head_bytes);
        break;
      case 1:
        bytes += 64; /* a nonce and a proof */
        break;
      case 2:
        for (size_t t = 0; t < text_bytes; ++t) packet.text[t] = (char)any(256);
        bytes += any(text_bytes + 1);
        break;
      default:
        break;
    }
    sent += send_packet(file, &packet, bytes);
  }
  return sent;
}

int main(int count, char** arguments) {
  if (count != 5) return 2;
  uid_t user = (uid_t)atoi(arguments[1]);
  if (user != getuid() && (setgid(user) != 0 || setuid(user) != 0)) return 3;
  state = (uint32_t)strtoul(arguments[2], NULL, 10) | 1;
  long enough = atol(arguments[3]);
  int held[open_at_most];
  for (int i = 0; i < open_at_most; ++i) held[i] = -1;
  long connections = 0, packets = 0;
  for (;;) {
    struct pollfd input = {0, POLLIN, 0};
    if (poll(&input, 1, 0) != 0) break;
    int file = connect_to(arguments[4]);
    if (file < 0) {
      usleep(1000);
      continue;
    }
    packets += attack(file);
    int slot = (int)any(open_at_most);
    if (held[slot] >= 0) close(held[slot]);
    held[slot] = file;
    if (++connections == enough) {
      puts("enough");
      fflush(stdout);
    }
  }
  printf("%ld %ld\n", connections, packets);
  return 0;
}
