#!/usr/bin/env bash
# Builds an Open MPI that has coll/xhc, its collectives for one host: version 6, newer than the distributions'.
#
#   GRADLINK_OPENMPI_SOURCES=FOLDER bash lab/peers/build-openmpi.sh PREFIX
#
# FOLDER: a checkout of github.com/open-mpi/ompi (branch v6.0.x) with its submodules, or an unpacked release; it is copied,
# nothing is written there. PREFIX: where it is installed, for GRADLINK_PEERS_OPENMPI. Debian's packages autoconf, automake,
# libtool, flex, libhwloc-dev and libevent-dev bring the rest. It takes some ten minutes on two cores.
set -euo pipefail
usage="GRADLINK_OPENMPI_SOURCES=FOLDER bash $0 PREFIX"
prefix=${1:?expected the folder to install to, got none: $usage}
sources=${GRADLINK_OPENMPI_SOURCES:?expected the folder of a checkout of github.com/open-mpi/ompi, got none: $usage}
[[ -d $sources/ompi/mca/coll/xhc ]] || {
  echo "expected an Open MPI with ompi/mca/coll/xhc (branch v6.0.x) in $sources, got a folder without it" >&2
  exit 2
}
for part in 3rd-party/openpmix 3rd-party/prrte config/oac; do
  [[ -e $sources/configure || -n $(ls "$sources/$part" 2>/dev/null) ]] || {
    echo "expected the submodules in $sources, got an empty $part: git submodule update --init --recursive" >&2
    exit 2
  }
done
. "$(dirname "${BASH_SOURCE[0]}")/copied.sh"
copied "$sources" "$prefix"
[[ -e configure ]] || ./autogen.pl --no-3rdparty hwloc,libevent
mkdir gradlink-build
cd gradlink-build
../configure --prefix="$prefix" --disable-mpi-fortran --disable-oshmem --disable-sphinx --disable-standard-abi \
  --disable-static --without-ucx --without-ofi --with-hwloc=external --with-libevent=external \
  --with-pmix=internal --with-prrte=internal CFLAGS=-O3
make -j"$(nproc)"
make install
echo "GRADLINK_PEERS_OPENMPI=$prefix"
