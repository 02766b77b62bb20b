# spec 1, B3: a setuid program is refused with 126 unless Weir may trace it.
. "$(dirname "$0")/lib.sh"
chmod 755 "$T"
cp /bin/id "$T/id"; chmod 4755 "$T/id"
if ((EUID == 0)); then
  user='setpriv --reuid=65534 --regid=65534 --clear-groups'
  $user test -x "$WEIR" || skip "$WEIR is not reachable for other users"
  chown 0 "$T/id"; chmod 4755 "$T/id"
  [[ $($user "$T/id") == *euid=0* ]] || skip 'setuid has no effect here'
  expect_fail 126 'id.*set-?uid' $user "$WEIR" run -- "$T/id"
  mkdir -m 777 "$T/anybodys"
  expect_fail 126 'id.*set-?uid' $user "$WEIR" profile -o "$T/anybodys/refused.weir" -- "$T/id"
  same "$T/id" -u            # root may
else
  refused 126 'su.*set-?uid' su --version
fi
