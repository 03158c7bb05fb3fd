#!/bin/sh
# An empty container: a root folder with Node, npm, a shell and what these need, and nothing else of the machine.
#
#   container.sh make ROOT          fills the folder
#   container.sh enter ROOT CMD...  runs a program in it, in /app, with processes of its own and the network of the caller
#
# Needs root and util-linux.
set -eu

# Beside Node and npm; npm starts programs by a shell and env.
programs='sh env'

# A file at the same path, with the libraries that it is linked with.
copy() {
  for file in "$1" $(ldd "$1" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p'); do
    [ -e "$root$file" ] || install -D "$(readlink -f "$file")" "$root$file"
  done
}

make() {
  root=$1
  mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/app" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/root" "$root/etc"
  ln -s usr/bin "$root/bin"
  # Where the linker of every program is looked for, wherever the machine has it.
  for name in lib lib64; do
    if [ -L "/$name" ]; then
      mkdir -p "$root/usr/$name"
      ln -s "usr/$name" "$root/$name"
    fi
  done
  for name in node $programs; do copy "$(command -v "$name")"; done
  [ -e "$root/usr/bin/node" ] || ln -s "$(command -v node)" "$root/usr/bin/node"
  npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
  mkdir -p "$root$(dirname "$npm")"
  cp -R "$npm" "$root$npm"
  for name in npm npx; do ln -s "$npm/bin/$name-cli.js" "$root/usr/bin/$name"; done
  # How names are found, and whom to trust, of the caller's network.
  for file in /etc/hosts /etc/resolv.conf /etc/nsswitch.conf /etc/passwd "${NODE_EXTRA_CA_CERTS:-}"; do
    [ ! -f "$file" ] || install -D -m 644 "$(readlink -f "$file")" "$root$file"
  done
  for library in /lib/*/libnss_dns.so.2 /lib/*/libnss_files.so.2 /lib/*/libresolv.so.2; do
    [ ! -e "$library" ] || install -D "$library" "$root$library"
  done
}

enter() {
  root=$1
  shift
  # shellcheck disable=SC2016
  exec unshare --mount --pid --fork --kill-child sh -euc '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind --make-rslave /sys "$root/sys"
    set -- PATH=/usr/bin HOME=/root ${NODE_EXTRA_CA_CERTS:+"NODE_EXTRA_CA_CERTS=$NODE_EXTRA_CA_CERTS"} "$@"
    exec chroot "$root" /usr/bin/env -C /app -i "$@"' sh "$root" "$@"
}

case ${1:-} in
  make | enter)
    what=$1
    shift
    "$what" "$@"
    ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
