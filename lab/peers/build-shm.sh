#!/usr/bin/env bash
# Builds shm_allreduce.cc with the all-reduce in shared memory of DeepSpeed, sglang or vLLM.
#
#   GRADLINK_SHM_SOURCES=FOLDER bash lab/peers/build-shm.sh PROGRAM
#
# FOLDER: a checkout of github.com/deepspeedai/DeepSpeed, sgl-project/sglang or vllm-project/vllm; nothing is written
# there. PROGRAM: the file to make, for GRADLINK_PEERS_DEEPSPEED, GRADLINK_PEERS_SGLANG or GRADLINK_PEERS_VLLM. Debian's
# package libtorch-dev brings the rest. They are written for processors with AVX-512.
set -euo pipefail
usage="GRADLINK_SHM_SOURCES=FOLDER bash $0 PROGRAM"
program=${1:?expected the file to make, got none: $usage}
sources=${GRADLINK_SHM_SOURCES:?expected the folder of a checkout of DeepSpeed, sglang or vLLM, got none: $usage}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
flags=(-O3 -w -fopenmp -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c -mfma)
if [[ -f $sources/csrc/cpu/comm/shm.cpp ]]; then
  peer=DEEPSPEED file=csrc/cpu/comm/shm.cpp
elif [[ -f $sources/sgl-kernel/csrc/cpu/shm.cpp ]]; then
  peer=SGLANG file=sgl-kernel/csrc/cpu/shm.cpp
elif [[ -f $sources/csrc/cpu/shm.cpp ]]; then
  peer=VLLM file=csrc/cpu/shm.cpp
  ! grep -A2 'init_shm_manager(const' "$sources/$file" | grep -q thread_num || flags+=(-DGRADLINK_VLLM_THREADS)
else
  echo "expected csrc/cpu/comm/shm.cpp (DeepSpeed), sgl-kernel/csrc/cpu/shm.cpp (sglang) or csrc/cpu/shm.cpp (vLLM)" \
    "in $sources, got a folder without them" >&2
  exit 2
fi
torch=/usr/include/torch/csrc/api/include
[[ -f $torch/torch/all.h ]] || {
  echo 'torch/all.h not installed (apt-get install libtorch-dev)' >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What is for Python in PyTorch's header for extensions is not needed.
mkdir -p "$work/torch"
echo '#include <torch/all.h>' >"$work/torch/extension.h"
compile() {
  "${CXX:-g++}" -std=c++17 "${flags[@]}" -DGRADLINK_$peer -include optional \
    -I"$work" -I"$sources/csrc" -I"$torch" -c "$1" -o "$2"
}
compile "$sources/$file" "$work/shm.o" &
compile "$here/shm_allreduce.cc" "$work/main.o"
wait $!
"${CXX:-g++}" -fopenmp "$work/main.o" "$work/shm.o" -Wl,--copy-dt-needed-entries \
  -ltorch -ltorch_cpu -lc10 -lrt -o "$work/program"
mkdir -p "$(dirname "$program")"
mv "$work/program" "$program"
echo "GRADLINK_PEERS_$peer=$(realpath "$program")"
