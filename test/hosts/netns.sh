#!/bin/sh
# Two to four hosts on one machine: network namespaces, each pair joined by a veth pair of its own, each with a host name
# of its own.
#
#   netns.sh up NAME [COUNT]     makes hosts NAME-a (10.77.N.1), NAME-b (10.77.N.2) ..., prints their addresses
#   netns.sh down NAME           ends what runs on them and removes them
#   netns.sh enter HOST CMD...   runs a program on one
#   netns.sh cut NAME            breaks the link between NAME-a and NAME-b
#   netns.sh slow NAME X Y RATE  lets the link between NAME-X and NAME-Y carry only so much, such as 20mbit, each way
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

# The first so many.
sides() { echo a b c d | cut -d ' ' -f "1-$1"; }

up() {
  name=$1
  all=$(sides "${2:-2}")
  mkdir -p "$hosts"
  network=$(free_network)
  echo "$network" >"$hosts/$name.network"
  for side in $all; do
    host=$name-$side
    ip netns add "$host"
    : >"$hosts/$host.uts"
    unshare --uts="$hosts/$host.uts" hostname "$host"
    ip -n "$host" link set lo up
  done
  number=1
  for side in $all; do
    echo "10.77.$network.$number $name-$side" >>"$hosts/$name.addresses"
    echo "10.77.$network.$number"
    other_number=1
    for other in $all; do
      if [ "$other_number" -lt "$number" ]; then
        ip link add "$name-to$other" netns "$name-$side" type veth peer name "$name-to$side" netns "$name-$other"
        link_up "$side" "$number" "$other" "$other_number"
        link_up "$other" "$other_number" "$side" "$number"
      fi
      other_number=$((other_number + 1))
    done
    number=$((number + 1))
  done
}

# A host has one address on all its links, and a route for each of the others.
link_up() {
  ip -n "$name-$1" address add "10.77.$network.$2/24" noprefixroute dev "$name-to$3"
  ip -n "$name-$1" link set "$name-to$3" up
  ip -n "$name-$1" route add "10.77.$network.$4/32" dev "$name-to$3" src "10.77.$network.$2"
}

slow() {
  tc -n "$1-$2" qdisc replace dev "$1-to$3" root tbf rate "$4" burst 64kb latency 400ms
  tc -n "$1-$3" qdisc replace dev "$1-to$2" root tbf rate "$4" burst 64kb latency 400ms
}

down() {
  name=$1
  for side in $(sides 4); do
    host=$name-$side
    [ -e "/run/netns/$host" ] || continue
    ip netns pids "$host" | while read -r pid; do kill -s KILL "$pid" 2>/dev/null || true; done
    ip netns delete "$host"
  done
  for side in $(sides 4); do
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
  up) up "$2" "${3:-2}" ;;
  down) down "$2" ;;
  cut) ip -n "$2-a" link set "$2-tob" down ;;
  slow) shift && slow "$@" ;;
  enter) shift && enter "$@" ;;
  *) remote_shell "$@" ;;
esac
