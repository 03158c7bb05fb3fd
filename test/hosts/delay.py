# Delays packets: what goes out of one network interface comes in at another so many milliseconds later, as netem would
# have it where the kernel has that. Both are interfaces of this process; netns.sh puts the second on another host.
#
#   delay.py OUT IN MILLISECONDS    returns when there are interfaces of these names, and goes on behind
import collections
import fcntl
import os
import select
import struct
import sys
import time

# <linux/if_tun.h>: a packet is an IP packet, without a header of the interface.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LARGEST_PACKET = 65535


def interface(name):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def main(out_name, in_name, milliseconds):
    out, into = interface(out_name), interface(in_name)
    if os.fork() != 0:
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    waiting = collections.deque()
    while True:
        left = waiting[0][0] - time.monotonic() if waiting else None
        if left is not None and left <= 0:
            os.write(into, waiting.popleft()[1])
        elif select.select([out], [], [], left)[0]:
            waiting.append((time.monotonic() + milliseconds / 1000, os.read(out, LARGEST_PACKET)))


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
