#!/bin/sh
# Installs the npm packages of a folder that has a package.json: node_packages.sh FOLDER
#
# FOLDER/node_modules/.ready tells that they are whole. Without Node 20 or newer and npm nothing is made and that is no
# error: tests that need them are skipped then.
set -eu

folder=$1
rm -f "$folder/node_modules/.ready"

if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null || ! npm --version >/dev/null 2>&1; then
    echo "No Node 20 or newer with npm found: tests with an encrypted client will be skipped." >&2
    exit 0
fi
echo "Installing the npm packages of $folder, which can take a minute"
cd "$folder"
npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error --prefer-offline \
    --fetch-retries=5 --fetch-retry-maxtimeout=20000 || {
    echo "npm could not install the packages of $folder/package.json; see above, then run make setup again." >&2
    exit 1
}
touch node_modules/.ready
