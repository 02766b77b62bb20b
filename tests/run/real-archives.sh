# Tar with gzip, bzip2 and xz, through pipes and files, and back.
. "$(dirname "$0")/lib.sh"
mkdir "$T/tree"; for i in 1 2 3; do seq $((i * 8000)) >"$T/tree/file$i"; done; ln -s file1 "$T/tree/link"
common="--sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C $T tree"
same bash -c "tar -cf - $common | sha256sum; tar -czf a.tgz $common && tar -tvzf a.tgz && gzip -l a.tgz && tar -xzf a.tgz && diff -r tree $T/tree && gzip -dc a.tgz | sha256sum"
same bash -c "tar -cJf a.txz $common && sha256sum a.txz && tar -xJf a.txz && diff -r tree $T/tree; xz -l a.txz; xz -T2 -9 --block-size=50000 -c tree/file3 | xz -dc | sha256sum"
same bash -c "tar -cjf a.tbz $common && bzip2 -t a.tbz && sha256sum a.tbz"
STATUS=1 STDIN=$T/tree/file1 same gzip -d
