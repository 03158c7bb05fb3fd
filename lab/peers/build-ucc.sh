#!/usr/bin/env bash
# Builds UCC and ucc_allreduce.c, which times its all-reduce over UCX.
#
#   GRADLINK_UCC_SOURCES=FOLDER bash lab/peers/build-ucc.sh PREFIX
#
# FOLDER: a checkout of github.com/openucx/ucc, v1.3.0 for Debian 12's UCX 1.13; it is copied, nothing is written there.
# PREFIX: where it is installed; PREFIX/bin/ucc_allreduce is for GRADLINK_PEERS_UCC. GRADLINK_UCX: the folder of a newer
# UCX. Debian's packages autoconf, automake, libtool, libucx-dev and libopenmpi-dev bring the rest. It takes some three
# minutes on two cores.
set -euo pipefail
usage="GRADLINK_UCC_SOURCES=FOLDER bash $0 PREFIX"
prefix=${1:?expected the folder to install to, got none: $usage}
sources=${GRADLINK_UCC_SOURCES:?expected the folder of a checkout of github.com/openucx/ucc, got none: $usage}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -f $sources/src/ucc/api/ucc.h ]] || {
  echo "expected src/ucc/api/ucc.h of github.com/openucx/ucc in $sources, got a folder without it" >&2
  exit 2
}
. "$here/copied.sh"
copied "$sources" "$prefix"
[[ -e configure ]] || ./autogen.sh
./configure --prefix="$prefix" --with-ucx="${GRADLINK_UCX:-/usr}" --without-cuda --without-rocm --with-tls=ucp,self \
  --disable-static CFLAGS=-O3
make -j"$(nproc)"
make install
mpicc.openmpi -O3 -I"$prefix/include" "$here/ucc_allreduce.c" -L"$prefix/lib" -Wl,-rpath,"$prefix/lib" -lucc \
  -o "$prefix/bin/ucc_allreduce"
echo "GRADLINK_PEERS_UCC=$prefix/bin/ucc_allreduce"
