# Icount counts per image; the images of a dynamic program, and their sum.
. "$(dirname "$0")/lib.sh"
library part.c <<'C'
void part(long n) { asm volatile("1: dec %0; jnz 1b" : "+r"(n)); }
C
compile images.c -L"$T" -lpart -Wl,-rpath,"$T" <<'C'
void part(long);
int main() { long n = 10000000; asm volatile("1: dec %0; jnz 1b" : "+r"(n)); part(15000000); }
C
count "$T/images"
[[ $(json 'sum(i["instructions"] for i in j["images"].values()) == j["instructions"]') == True ]] || fail "the sum differs: $(json j)"
[[ $(json 'sorted((n.split("/")[-1], i["instructions"] // 1000000) for n, i in j["images"].items() if i["instructions"] > 1000000)') == "[('images', 20), ('libpart.so', 30)]" ]] || fail "$(json 'j["images"]')"
[[ $(json 'any("ld-linux" in n for n in j["images"]) and any("libc.so" in n for n in j["images"])') == True ]] || fail "$(json 'j["images"]')"
