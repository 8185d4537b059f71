#!/usr/bin/env bash
# ./dev lint [all]: clang-tidy on the C++ files that differ from the last commit, or on all.
# It runs only checks that find bugs (.clang-tidy lists them): a check that argues about taste gets switched off by
# people.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build_tree.sh

tools/install_packages.sh build check
if [[ ${1:-} == all ]]; then
  mapfile -t files < <(git ls-files 'src/*.cc')
else
  mapfile -t files < <({ git diff --name-only --diff-filter=d HEAD; git ls-files --others --exclude-standard; } |
    grep -E '^src/.*\.cc$' | sort -u)
fi
if ((${#files[@]} == 0)); then
  echo "lint: no C++ file changed"
  exit 0
fi
build_tree default programs # generated headers must be there
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy-19 -p build --quiet
