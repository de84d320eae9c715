# Sourced by the scripts here: where the kernels and images are kept, and which there are.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
store=${KERNELS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/iotop-plus-kernels}

# NAME SUITE ARCHITECTURE PATTERN: the newest package of the suite whose name fits is the kernel NAME.
kernels='5.10 bullseye amd64 linux-image-5\.10\..*-amd64
6.1 bookworm amd64 linux-image-6\.1\..*-amd64
6.12 trixie amd64 linux-image-6\.12\..*-amd64
newest sid amd64 linux-image-[7-9]\..*-amd64
arm64 trixie arm64 linux-image-6\.12\..*-arm64'

# The root of every guest is of this suite.
root_suite=trixie

die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

kernel_field() { awk -v name="$1" -v field="$2" '$1 == name { print $field }' <<<"$kernels"; }
kernel_names() { awk '{ print $1 }' <<<"$kernels"; }
