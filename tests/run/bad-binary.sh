# spec 1, B3: a 32-bit or foreign binary, a broken one, one with a missing loader: 126 or 127, in one line.
. "$(dirname "$0")/lib.sh"
patch() { cp /bin/true "$T/$1"; printf "$3" | dd of="$T/$1" bs=1 seek="$2" conv=notrunc status=none; }
patch bits32 4 '\001'; printf '\003\0' | dd of="$T/bits32" bs=1 seek=18 conv=notrunc status=none
patch aarch64 18 '\267\0'
patch object 16 '\001\0'
patch no_headers 56 '\0\0'
head -c 30 /bin/true >"$T/short"; chmod +x "$T/short"
head -c 200 /bin/true >"$T/cut"; chmod +x "$T/cut"
printf '\177ELF' >"$T/magic"; chmod +x "$T/magic"
: >"$T/empty"; chmod +x "$T/empty"
refused 126 'bits32.*(32-bit|x86-64)' "$T/bits32"
for name in aarch64 object no_headers short cut magic empty; do refused 126 "$name" "$T/$name"; done
compile loader.c -Wl,--dynamic-linker=/nonexistent/ld.so <<<'int main() {}'
refused 127 'loader' "$T/loader"
