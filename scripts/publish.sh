#!/usr/bin/env bash
# Publishes what lies in build/npm. The platform packages go first: gradlink depends on them in its own version, and who
# installs it a moment after must find them.
#
#   publish.sh vVERSION [OPTION of npm publish ...]     --dry-run, to see what it would do
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:?the tag, vVERSION}
shift

version=$(node -p 'require("./package.json").version')
if [ "$tag" != "v$version" ]; then
  echo "The tag is $tag, but package.json has version $version." >&2
  exit 1
fi
tarballs=()
for name in gradlink-linux-x64-gnu gradlink-linux-arm64-gnu gradlink; do
  tarball=build/npm/$name-$version.tgz
  if [ ! -f "$tarball" ]; then
    echo "$tarball is missing: pack on each platform first (bash scripts/prebuild.sh)." >&2
    exit 1
  fi
  tarballs+=("$tarball")
done
for tarball in "${tarballs[@]}"; do
  npm publish "$tarball" --access public --provenance "$@"
done
