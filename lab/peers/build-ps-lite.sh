#!/usr/bin/env bash
# Builds ps-lite and ps_lite.cc, which pushes and pulls one key through it, beside gradlink's own store.
#
#   GRADLINK_PS_LITE_SOURCES=FOLDER bash lab/peers/build-ps-lite.sh PROGRAM
#
# FOLDER: a checkout of github.com/dmlc/ps-lite; nothing is written there. PROGRAM: the file to make, for
# GRADLINK_PEERS_PS_LITE. Debian's packages libzmq3-dev, libprotobuf-dev and protobuf-compiler bring the rest.
set -euo pipefail
program=${1:?expected the file to make, got none: GRADLINK_PS_LITE_SOURCES=FOLDER bash $0 PROGRAM}
sources=${GRADLINK_PS_LITE_SOURCES:?expected the folder of a checkout of github.com/dmlc/ps-lite, got none}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for file in src/van.cc src/meta.proto include/ps/ps.h; do
  [[ -f $sources/$file ]] || {
    echo "expected $file of github.com/dmlc/ps-lite in $sources, got a folder without it" >&2
    exit 2
  }
done
command -v protoc >/dev/null || {
  echo 'protoc not installed (apt-get install libzmq3-dev libprotobuf-dev protobuf-compiler)' >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$sources/src" "$sources/include" "$work"
protoc --cpp_out="$work/src" --proto_path="$work/src" "$work/src/meta.proto"
# Its own flags, and the message of protobuf without which nothing links.
"${CXX:-g++}" -std=c++17 -O3 -w -pthread -I"$work/src" -I"$work/include" \
  "$work"/src/*.cc "$here/ps_lite.cc" -lzmq -lprotobuf-lite -lprotobuf -o "$work/program"
mkdir -p "$(dirname "$program")"
mv "$work/program" "$program"
echo "GRADLINK_PEERS_PS_LITE=$(realpath "$program")"
