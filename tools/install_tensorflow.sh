#!/usr/bin/env bash
# Installs TensorFlow for the tests that train with it: PyPI's build for the CPU, in build-tensorflow/, 1.6 GB. It is no
# part of the other packages, since it is larger than all of them together: the tests that need it are left out where it
# is not there. CI installs it when AIMASTER_TEST_TENSORFLOW is set.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build-tensorflow
wanted=tensorflow-cpu==2.21.0

if [[ -x $folder/bin/python ]] && "$folder/bin/python" -m pip show -q tensorflow-cpu 2>/dev/null; then exit 0; fi
tools/install_packages.sh test
/usr/bin/python3 -m venv "$folder"
if ! "$folder/bin/python" -m pip install -q --disable-pip-version-check "$wanted"; then
  echo "install_tensorflow: pip could not install $wanted; is PyPI reachable? It needs Python 3.10 to 3.13" >&2
  rm -rf "$folder"
  exit 1
fi
