# Make -j2 with recursion, patterns and failures.
. "$(dirname "$0")/lib.sh"
cat >"$T/Makefile" <<'M'
objects := $(patsubst %,part%.o,$(shell seq 1 8))
all: program; ./program
program: $(objects); gcc -o $@ $^
part%.o: part%.c; @gcc -c -o $@ $<
part1.c: ; @echo 'int part8(void); int main() { return part8() - 8; }' >$@
part%.c: ; @echo 'int part$*(void) { return $*; }' >$@
broken: ; @exit 3
.PRECIOUS: part%.c
M
same_out bash -c "cp $T/Makefile .; make -s -j2 all; ls | sort; make all; touch part3.c; make -n; sha256sum program"
STATUS=2 same make -f "$T/Makefile" broken
