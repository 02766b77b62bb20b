# Coreutils, side by side with native.
. "$(dirname "$0")/lib.sh"
seq 20000 | awk '{ print ($1 * 7919) % 20011, "line", $1 }' >"$T/data"
same sort "$T/data"
same sort -k1,1nr -k3 --parallel=2 -S 1M "$T/data"
same wc "$T/data"
same cut -d ' ' -f 1,3 "$T/data"
for program in md5sum sha1sum sha256sum sha512sum b2sum cksum base64 tac rev nl od 'head -n 3' 'tail -n 3' 'uniq -c' 'tr 0-9 a-j' 'fold -w 10' 'split -l 5000 --filter=wc'; do
  STDIN=$T/data same $program
done
same bash -c "cp -r $T/data copy; mkdir -p a/b/c; mv copy a/b; ln -s a link; touch -d 2020-01-01 a/b/c/file; ls -R . ; cat link/b/copy | wc -l; find . | sort; du -b a/b/copy; rm -r a link; stat -c %s $T/data"
same ls -l /usr/include/linux
same find /usr/include/c++ -name '*.h' -size +50k -printf '%f %s\n'
same factor 123456789012345678 18446744073709551557
same numfmt --to=iec 123456789
same date -d @1700000000
same expr 12345 '*' 6789
same seq 1 0.5 2000
same env -i A=1 B=2 env
STATUS=124 same timeout 0.2 sleep 10
STATUS=2 same ls /nonexistent
STATUS=1 same cat /nonexistent
