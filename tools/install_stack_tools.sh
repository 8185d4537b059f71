#!/usr/bin/env bash
# Installs the tools that take call stacks of Python, for the tests and the benchmark: py-spy and pystack, pinned, in
# build-stack-tools/. (eu-stack comes with the packages.) The tests that need them are left out where they are not
# there, since a network without PyPI is no reason to test nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build-stack-tools
wanted=(py-spy==0.4.0 pystack==1.4.1)

if [[ "$(cat "$folder/pinned" 2>/dev/null)" == "${wanted[*]}" ]]; then exit 0; fi
rm -rf "$folder"
/usr/bin/python3 -m venv "$folder"
if ! "$folder/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: "${wanted[@]}"; then
  echo "install_stack_tools: pip could not install ${wanted[*]}; is PyPI reachable?" >&2
  rm -rf "$folder"
  exit 1
fi
echo "${wanted[*]}" >"$folder/pinned"
