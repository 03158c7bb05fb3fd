#!/usr/bin/env bash
# Makes @tensorflow/tfjs-node and @tensorflow/tfjs-node-gpu loadable for the tests, in build/tfjs-node: their installers
# download a libtensorflow that is not to be had everywhere, so the bindings that the packages bring as C++ are compiled
# against the TensorFlow of python3, or, where that has none, of the Python package tensorflow-cpu. The JavaScript is the
# packages' own; both compute on the CPU where TensorFlow has no GPU.
#
#   tfjs-node.sh     exit status 3, and the reason in build/tfjs-node/missing, where TensorFlow cannot be had
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
folder=$root/build/tfjs-node
packages=(tfjs-node tfjs-node-gpu)
modules=$folder/node_modules/@tensorflow

# without REASON: what the tests are skipped with.
without() {
  echo "$1" >"$folder/missing"
  echo "tfjs-node.sh: $1" >&2
  exit 3
}

binding() { echo "$modules/$1/lib/napi-v8/tfjs_binding.node"; }

# The folder with TensorFlow's headers and libraries.
tensorflow() {
  local found wheel
  # Asked, not imported, which takes seconds.
  found=$(python3 -c 'import importlib.util as u; s = u.find_spec("tensorflow"); print(s.submodule_search_locations[0] if s else "")' 2>/dev/null || true)
  if [ -n "$found" ] && [ -e "$found/libtensorflow_cc.so.2" ] && [ -d "$found/include" ]; then
    echo "$found"
    return
  fi
  if [ ! -e "$folder/tensorflow/complete" ]; then
    rm -rf "$folder/wheel" "$folder/tensorflow"
    python3 -m pip download -q --no-deps --only-binary=:all: -d "$folder/wheel" tensorflow-cpu >"$folder/pip.log" 2>&1 || return 1
    wheel=$(find "$folder/wheel" -name '*.whl')
    python3 - "$wheel" "$folder" <<'PYTHON'
import sys, zipfile
wheel, to = sys.argv[1:]
with zipfile.ZipFile(wheel) as packed:
    for name in packed.namelist():
        if name.startswith("tensorflow/include/") or name.endswith(("/libtensorflow_cc.so.2", "/libtensorflow_framework.so.2")):
            packed.extract(name, to)
PYTHON
    rm -rf "$folder/wheel"
    touch "$folder/tensorflow/complete"
  fi
  echo "$folder/tensorflow"
}

mkdir -p "$folder"
version=$(node -p 'require("@tensorflow/tfjs-core/package.json").version')
if [ "$(cat "$folder/version" 2>/dev/null)" = "$version" ] && [ -e "$(binding tfjs-node)" ] && [ -e "$(binding tfjs-node-gpu)" ]; then
  exit 0
fi
rm -rf "$folder/missing" "$folder/version" "$folder/node_modules"

command -v python3 >/dev/null 2>&1 || without "TensorFlow cannot be had: there is no python3 to ask"
command -v g++ >/dev/null 2>&1 || without "the bindings cannot be compiled: there is no g++"
library=$(tensorflow) || without "TensorFlow cannot be had: python3 has none, and pip cannot download tensorflow-cpu"

echo '{ "private": true }' >"$folder/package.json"
npm install --prefix "$folder" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error \
  "${packages[@]/#/@tensorflow/}" </dev/null >"$folder/npm.log" 2>&1 ||
  without "npm cannot install ${packages[*]/#/@tensorflow/}"
for package in "${packages[@]}"; do
  installed=$(node -p 'require(process.argv[1]).version' "$modules/$package/package.json")
  [ "$installed" = "$version" ] || without "@tensorflow/$package is $installed, and @tensorflow/tfjs-core $version"
done

for package in "${packages[@]}"; do
  target=$modules/$package
  mkdir -p "$(dirname "$(binding "$package")")"
  # The two packages have the same sources.
  if diff -rq "$modules/tfjs-node/binding" "$target/binding" >/dev/null && [ -e "$(binding tfjs-node)" ]; then
    cp "$(binding tfjs-node)" "$(binding "$package")"
    continue
  fi
  g++ -std=c++17 -O2 -fPIC -shared -o "$(binding "$package").new" \
    -I"$library/include" -I"$root/node_modules/node-api-headers/include" \
    "$target"/binding/*.cc -L"$library" -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2 -Wl,-rpath,"$library" \
    >"$folder/compile.log" 2>&1 || {
    tail -n 20 "$folder/compile.log" >&2
    without "the binding of @tensorflow/$package does not compile against the TensorFlow in $library"
  }
  mv "$(binding "$package").new" "$(binding "$package")"
done
# Only one copy of what all have in common: that of the checkout, which is found further up.
for name in tfjs-core tfjs-layers tfjs-backend-cpu tfjs-backend-wasm; do
  if [ -d "$root/node_modules/@tensorflow/$name" ]; then rm -rf "${modules:?}/$name"; fi
done
for package in "${packages[@]}"; do
  TF_CPP_MIN_LOG_LEVEL=3 node -e 'require(process.argv[1])' "$modules/$package" >"$folder/load.log" 2>&1 || {
    rm -f "$(binding "$package")"
    without "@tensorflow/$package does not load: $(grep -m 1 Error "$folder/load.log" || tail -n 1 "$folder/load.log")"
  }
done
echo "$library" >"$folder/library"
echo "$version" >"$folder/version"
