#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image: it installs the pinned course into /autograder/venv.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
export DEBIAN_FRONTEND=noninteractive

# The pinned packages need Python 3.11 or newer, with venv; the usual base image (Ubuntu 22.04) has 3.10.
usable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
python=""
for name in python3.12 python3.13 python3.11 python3; do
    if usable "$name"; then
        python="$name"
        break
    fi
done
if [ -z "$python" ]; then
    apt-get update
    apt-get install -y software-properties-common
    add-apt-repository -y ppa:deadsnakes/ppa
    apt-get install -y python3.12 python3.12-venv
    python=python3.12
fi

"$python" -m venv "$root/venv"
pip() { "$root/venv/bin/python" -m pip install --disable-pip-version-check --no-cache-dir \
    -c "$root/source/constraints.txt" "$@"; }
# This index has PyTorch without CUDA: 200 MB in place of some GB. Where it cannot be reached, PyPI has the other.
pip --no-deps --index-url https://download.pytorch.org/whl/cpu torch || echo "Taking PyTorch from PyPI instead."
# In place (-e): the sandbox hides folders of the course, and they must not lie inside the libraries.
pip -e "$root/source"

# Learner code runs as nobody, who must be able to read the libraries.
chmod -R a+rX "$root/venv" "$root/source"
"$root/venv/bin/python" -P -c "from course_utils.grading.controller.machine import available; print('sandbox:', available())"
