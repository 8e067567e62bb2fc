#!/bin/sh
# Makes or updates a Python environment: environment.sh FOLDER CONSTRAINTS WHAT-TO-INSTALL...
#
# FOLDER/.ready tells that the environment is whole: it is taken away first and put back last, and an environment
# without it is made anew. No ensurepip is needed (Debian ships it apart), only a Python that has pip or ensurepip.
set -eu

folder=$1
constraints=$2
shift 2

find_python() {
    for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13}; do
        if "$candidate" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "No Python 3.11 or newer found (tried: ${PYTHON:-python3, python3.11, python3.12, python3.13})." >&2
    echo "Install one, or name one: make setup PYTHON=/path/to/python3" >&2
    exit 1
}

install_pip() {
    if "$python" -c 'import pip' 2>/dev/null; then
        "$python" -m pip --python "$folder/bin/python" install -qq --constraint "$constraints" pip
    elif "$folder/bin/python" -m ensurepip >/dev/null 2>&1; then
        "$folder/bin/python" -m pip install -qq --constraint "$constraints" pip
    else
        echo "$python has neither pip nor ensurepip. On Debian and Ubuntu: apt-get install python3-pip" >&2
        exit 1
    fi
}

if [ -e "$folder/.ready" ] && "$folder/bin/python" -c 'import pip' 2>/dev/null; then
    echo "Bringing $folder up to date"
    rm "$folder/.ready"
else
    python=$(find_python)
    echo "Making $folder with $("$python" --version), which can take a minute"
    "$python" -m venv --clear --without-pip "$folder"
    install_pip
fi
"$folder/bin/python" -m pip install -qq --constraint "$constraints" --build-constraint "$constraints" pip "$@"
touch "$folder/.ready"
