# Openssl: digests, ciphers, keys, signatures, certificates; its hand-written assembly.
. "$(dirname "$0")/lib.sh"
need openssl
seq 30000 >"$T/data"
openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$T/key" 2>/dev/null || openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$T/key" 2>/dev/null
for digest in md5 sha1 sha256 sha512 sha3-256 blake2b512 sm3; do same openssl dgst -$digest "$T/data"; done
for cipher in aes-128-cbc aes-256-ctr aes-256-ecb chacha20 camellia-128-cbc; do
  same openssl enc -$cipher -K 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f -iv 000102030405060708090a0b0c0d0e0f -in "$T/data"
done
same openssl dgst -sha256 -sign "$T/key" -hex "$T/data"
same openssl rsa -in "$T/key" -pubout
same bash -c "openssl genpkey -algorithm ED25519 -out k && openssl pkey -in k -pubout -out p && openssl pkeyutl -sign -inkey k -rawin -in $T/data -out s && openssl pkeyutl -verify -pubin -inkey p -rawin -in $T/data -sigfile s"
same bash -c "openssl ecparam -name prime256v1 -genkey -noout -out k && openssl dgst -sha256 -sign k -out s $T/data && openssl dgst -sha256 -prverify k -signature s $T/data"
same_out openssl req -x509 -key "$T/key" -subj /CN=test -days 3650 -set_serial 1 -noout
same openssl prime -checks 5 170141183460469231731687303715884105727
same openssl version
