#!/bin/sh
# Two hosts on one machine: network namespaces joined by a veth pair, each with a host name of its own.
#
#   netns.sh up NAME             makes hosts NAME-a (10.77.N.1) and NAME-b (10.77.N.2), prints their addresses
#   netns.sh down NAME           ends what runs on them and removes them
#   netns.sh enter HOST CMD...   runs a program on one
#   netns.sh cut NAME            breaks the link between them
#   netns.sh ADDRESS CMD...      a remote shell's interface, for mpirun and rsync: runs a shell command on the host
#                                of that address; options before the address are passed over
#
# Needs root and iproute2. NAME has at most 8 characters.
set -eu
hosts=/run/gradlink-test-hosts

enter() {
  host=$1
  shift
  exec nsenter --net="/run/netns/$host" --uts="$hosts/$host.uts" "$@"
}

# A number of the network that no other pair of hosts has, so that tests may run side by side.
free_network() {
  n=1
  while ! mkdir "$hosts/network-$n" 2>/dev/null; do
    n=$((n + 1))
    [ "$n" -lt 255 ] || { echo "netns.sh: no free network" >&2; exit 1; }
  done
  echo "$n"
}

up() {
  name=$1
  mkdir -p "$hosts"
  network=$(free_network)
  echo "$network" >"$hosts/$name.network"
  for side in a b; do
    host=$name-$side
    ip netns add "$host"
    : >"$hosts/$host.uts"
    unshare --uts="$hosts/$host.uts" hostname "$host"
    ip -n "$host" link set lo up
  done
  ip link add "$name-va" netns "$name-a" type veth peer name "$name-vb" netns "$name-b"
  number=1
  for side in a b; do
    ip -n "$name-$side" address add "10.77.$network.$number/24" dev "$name-v$side"
    ip -n "$name-$side" link set "$name-v$side" up
    echo "10.77.$network.$number $name-$side" >>"$hosts/$name.addresses"
    echo "10.77.$network.$number"
    number=$((number + 1))
  done
}

down() {
  name=$1
  for side in a b; do
    host=$name-$side
    [ -e "/run/netns/$host" ] || continue
    ip netns pids "$host" | while read -r pid; do kill -s KILL "$pid" 2>/dev/null || true; done
    ip netns delete "$host"
  done
  for side in a b; do
    umount "$hosts/$name-$side.uts" 2>/dev/null || true
    rm -f "$hosts/$name-$side.uts"
  done
  if [ -e "$hosts/$name.network" ]; then rmdir "$hosts/network-$(cat "$hosts/$name.network")"; fi
  rm -f "$hosts/$name.network" "$hosts/$name.addresses"
  rmdir "$hosts" 2>/dev/null || true
}

remote_shell() {
  while [ $# -gt 0 ]; do
    case "$1" in
      -*) shift ;;
      *) break ;;
    esac
  done
  address=$1
  shift
  host=$(cat "$hosts"/*.addresses | while read -r known host; do
    if [ "$known" = "$address" ]; then echo "$host"; fi
  done)
  [ -n "$host" ] || { echo "netns.sh: no host has the address $address" >&2; exit 255; }
  # As a login on another host: nothing of the caller's environment.
  enter "$host" env -i PATH="$PATH" HOME="${HOME:-/root}" sh -c "$*"
}

case "${1:-}" in
  up) up "$2" ;;
  down) down "$2" ;;
  cut) ip -n "$2-a" link set "$2-va" down ;;
  enter) shift && enter "$@" ;;
  *) remote_shell "$@" ;;
esac
