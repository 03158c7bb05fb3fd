/*
 * Another user's process that binds addresses of a job's meetings once they have been public, and
 * lets go of some again, until standard input ends.
 *
 *   squatter UID SEED ADDRESS...
 *
 * UID is who it becomes. It takes no address but these, which are those of the list of sockets
 * without their @. It says `held` when it has the first; at the end it prints how often it took
 * one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { most = 300, queued_at_most = 2 };

static uint32_t state;

static uint32_t any(uint32_t bound) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state % bound;
}

struct held {
  int file;
  int queued[queued_at_most];
};

static int new_socket(void) {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Listens, or only binds, or has a full queue: the others cannot tell who it is then. */
static int take(struct held* held, const char* address) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  size_t length = strlen(address);
  memcpy(name.sun_path + 1, address, length);
  socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  held->file = new_socket();
  if (bind(held->file, (struct sockaddr*)&name, bytes) != 0) {
    close(held->file);
    held->file = -1;
    return 0;
  }
  uint32_t manner = any(4);
  if (manner > 0) listen(held->file, manner == 1 ? 0 : 8);
  for (int i = 0; manner == 1 && i < queued_at_most; ++i) {
    held->queued[i] = new_socket();
    connect(held->queued[i], (struct sockaddr*)&name, bytes);
  }
  return 1;
}

static void let_go(struct held* held) {
  close(held->file);
  for (int i = 0; i < queued_at_most; ++i) {
    if (held->queued[i] >= 0) close(held->queued[i]);
  }
  held->file = held->queued[0] = held->queued[1] = -1;
}

static const char* sockets(void) {
  static char text[1 << 20];
  int file = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
  size_t bytes = 0;
  ssize_t got;
  while (bytes < sizeof(text) - 1 &&
         (got = read(file, text + bytes, sizeof(text) - 1 - bytes)) > 0) {
    bytes += (size_t)got;
  }
  text[bytes] = '\0';
  close(file);
  return text;
}

int main(int count, char** arguments) {
  if (count < 4 || count > most) return 2;
  uid_t user = (uid_t)atoi(arguments[1]);
  if (setgid(user) != 0 || setuid(user) != 0) return 3;
  state = (uint32_t)strtoul(arguments[2], NULL, 10) | 1;
  static struct held held[most];
  static int seen[most];
  for (int i = 0; i < count; ++i) held[i] = (struct held){-1, {-1, -1}};
  long taken = 0;
  for (;;) {
    struct pollfd input = {0, POLLIN, 0};
    if (poll(&input, 1, 0) != 0) break;
    const char* list = sockets();
    for (int i = 3; i < count; ++i) {
      if (held[i].file >= 0) continue;
      seen[i] = seen[i] || strstr(list, arguments[i]) != NULL;
      if (!seen[i] || !take(&held[i], arguments[i])) continue;
      if (++taken == 1) {
        puts("held");
        fflush(stdout);
      }
    }
    int one = 3 + (int)any((uint32_t)count - 3);
    if (any(4) == 0 && held[one].file >= 0) let_go(&held[one]);
  }
  printf("%ld\n", taken);
  return 0;
}
