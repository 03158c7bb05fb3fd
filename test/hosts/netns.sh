#!/bin/sh
# Two to four hosts on one machine: network namespaces, each pair joined by a veth pair of its own, each with a host name
# of its own.
#
#   netns.sh up NAME [COUNT]     makes hosts NAME-a (10.77.N.1), NAME-b (10.77.N.2) ..., prints their addresses
#   netns.sh down NAME           ends what runs on them and removes them
#   netns.sh enter HOST CMD...   runs a program on one
#   netns.sh cut NAME            breaks the link between NAME-a and NAME-b
#   netns.sh shape NAME X Y WHAT HOW MUCH of what NAME-X sends to NAME-Y; the other way stays as it is:
#                                  rate 20mbit   no more a second
#                                  loss 1        percent of the packets are lost on the way
#                                  delay 20      milliseconds later; needs python3
#   netns.sh block NAME X Y      loses all TCP packets between the two, as a firewall that says nothing
#   netns.sh forget HOST SECONDS a firewall on a host that forgets connections at rest for so long, and loses what
#                                  comes of them then; needs nft
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

# By tbf, and by filters in place of netem, which not every kernel has. A packet that the receiver's filter drops was
# sent, as far as its sender knows; one that a queue of the sender drops is not sent at all.
shape() {
  case "$4" in
    rate) tc -n "$1-$2" qdisc replace dev "$1-to$3" root tbf rate "$5" burst 64kb latency 400ms ;;
    loss) drop "$1-$3" "$1-to$2" "$(loses "$5")" ;;
    delay) delay "$@" ;;
    *) echo "netns.sh: shape takes rate, loss or delay, not $4" >&2; exit 1 ;;
  esac
}

# Programs of the classic BPF: 2 is to drop a packet, 0 to let it pass.
# A random number of 32 bits below so many percent of them.
loses() { echo "4,32 0 0 4294963256,53 1 0 $(awk "BEGIN { printf \"%.0f\", 2^32 / 100 * $1 }"),6 0 0 2,6 0 0 0"; }
# The protocol of an IPv4 packet in an Ethernet frame is TCP.
is_tcp='4,48 0 0 23,21 0 1 6,6 0 0 2,6 0 0 0'

drop() {
  tc -n "$1" qdisc replace dev "$2" clsact
  tc -n "$1" filter add dev "$2" ingress bpf direct-action bytecode "$3"
}

block() {
  drop "$1-$3" "$1-to$2" "$is_tcp"
  drop "$1-$2" "$1-to$3" "$is_tcp"
}

# Whoever speaks on a forgotten connection hears nothing, as behind a switch that keeps a table of connections.
forget() {
  enter "$1" sh -ec '
    echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose
    echo "$1" >/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established
    for hook in input output; do
      nft "add table ip firewall; add chain ip firewall $hook { type filter hook $hook priority 0; }"
      nft "add rule ip firewall $hook meta l4proto tcp ct state invalid drop"
    done
    nft "add rule ip firewall input meta l4proto tcp counter"' - "$2"
}

# Out of an interface of the sender, and in at one of the receiver: the program between them ends with the sender.
delay() {
  out=$1-out$3
  into=$1-in$2
  from=$(address_of "$1-$2")
  to=$(address_of "$1-$3")
  (enter "$1-$2" python3 "$(dirname "$0")/delay.py" "$out" "$into" "$5")
  ip -n "$1-$2" link set "$into" netns "$1-$3"
  ip -n "$1-$3" link set "$into" up
  ip -n "$1-$2" link set "$out" txqueuelen 10000 up
  ip -n "$1-$2" route replace "$to/32" dev "$out" src "$from"
}

address_of() { awk -v host="$1" '$2 == host { print $1 }' "$hosts"/*.addresses; }

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
  shape) shift && shape "$@" ;;
  block) shift && block "$@" ;;
  forget) shift && (forget "$@") ;;
  enter) shift && enter "$@" ;;
  *) remote_shell "$@" ;;
esac
