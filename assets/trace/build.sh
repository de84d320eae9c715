#!/bin/sh
# Compiles the programs for the kernel: assets/trace/build.sh [OUTPUT-DIR]
#
# The objects are in the tree, so that nobody who builds or uses the program needs a compiler for them. They are
# made with one compiler, clang 14: it gives the same bytes wherever it runs, and a test compares
# (cargo test --test trace).
set -e
cd "$(dirname "$0")"
out=${1:-.}
CLANG=${CLANG:-clang-14}
STRIP=${STRIP:-llvm-strip-14}
OBJCOPY=${OBJCOPY:-llvm-objcopy-14}
for source in *.bpf.c; do
	object="$out/${source%.c}.o"
	"$CLANG" -O2 -g -Wall -Werror -target bpf -mcpu=v2 -fdebug-prefix-map="$PWD"=. -c "$source" -o "$object"
	"$STRIP" -g "$object"
	# Relocations of the type information, which no loader applies (the values are in place): a quarter of the object.
	"$OBJCOPY" --remove-section=.rel.BTF --remove-section=.rel.BTF.ext --remove-section=.llvm_addrsig "$object"
done
