#!/usr/bin/env bash
# ./dev fresh [--once] [--keep] [--in DIRECTORY] [PATTERN]: the README's two commands on a bare Debian 12, idle and beside other work.
#
# What passes here but not there leans on something that only our machines have. The bare Debian is a directory made by debootstrap, entered by
# chroot. It has Debian's own packages only, from the mirrors of this machine, and this machine's ways to them: proxies, certificate authorities,
# settings of npm. Invariant: nothing is ever mounted in the directory as this script sees it. All mounts are made in namespaces of their own
# (by debootstrap, by inside.sh), which go with their last process, whatever ends it. So the directory can always be removed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_tree=$(cd "$here/../.." && pwd)
release=bookworm

say() { echo "fresh: $*" >&2; }
fail() { say "$*"; exit 2; }

directory='' keep='' turns=(idle busy) pattern=''
while (($#)); do
  case $1 in
    --once) turns=(idle) ;;
    --keep) keep=1 ;;
    --in) (($# > 1)) || fail "--in needs a directory"; directory=$(realpath -m "$2") keep=1; shift ;;
    -*) fail "no option $1: --once, --keep and --in DIRECTORY are there" ;;
    *) [[ ! $pattern ]] || fail "one pattern, please: '$pattern' or '$1'?"; pattern=$1 ;;
  esac
  shift
done
((EUID == 0)) || fail "this needs root: it makes a Debian, mounts what it needs and enters it by chroot. Try sudo ./dev fresh"
mkdir -p "${directory:=$(mktemp -d /var/tmp/weir-fresh.XXXXXX)}"
logs=$source_tree/build/fresh
mkdir -p "$logs" && rm -f "$logs"/*.{log,status}

inside=''
leave() {
  [[ ! $inside ]] || { kill -KILL "$inside" && wait "$inside"; } 2>/dev/null || true  # (all that it started goes with it)
  if [[ $keep ]]; then say "$directory is kept: ./dev fresh --in $directory uses it again"; else rm -rf --one-file-system "$directory"; fi
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The archives of Debian 12 that apt uses here, as lines of a sources.list. Other archives are not Debian's own.
debian_archives() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v release=$release '$2 == release || $2 == release "-updates" || $2 == release "-security" { print "deb", $0 }' | sort -u
}

make_debian() {
  local mirror
  chmod 755 "$directory"  # (tests run programs as other users there)
  mirror=$(debian_archives | awk -v release=$release '$3 == release && $4 == "main" { print $2; exit }')
  say "making a bare Debian 12 in $directory (what debootstrap says: $logs/debootstrap.log)"
  unshare --mount --propagation private debootstrap --variant=minbase $release "$directory" ${mirror:+"$mirror"} >"$logs/debootstrap.log" 2>&1 ||
    { tail -n 5 "$logs/debootstrap.log" >&2; fail "debootstrap could not make it"; }
}

# give FILE…: those that there are, at the same place in the directory.
give() {
  local file
  for file; do [[ ! -f $file ]] || install -D -p -m "$(stat -c %a "$file")" "$file" "$directory$file"; done
}

# This machine's ways to packages. Certificate authorities go where update-ca-certificates looks for them, as it makes the bundle anew when
# ca-certificates is installed; a file of authorities that is named elsewhere is given, too.
give_settings() {
  local archives name
  archives=$(debian_archives)
  [[ ! $archives ]] || echo "$archives" >"$directory/etc/apt/sources.list"
  apt-config dump 2>/dev/null | grep -E '^Acquire::(https?::|Check-Valid-Until|ForceIPv|Retries)' >"$directory/etc/apt/apt.conf.d/99machine" || true
  give /etc/resolv.conf /etc/hosts /etc/apt/auth.conf /etc/apt/auth.conf.d/* /usr/share/keyrings/debian-*.gpg
  give ~/.npmrc /etc/npmrc /usr/etc/npmrc
  [[ -f /etc/npmrc || ! -f /usr/etc/npmrc ]] || cp -p /usr/etc/npmrc "$directory/etc/npmrc"  # (where Debian's npm looks)
  mkdir -p "$directory/usr/local/share/ca-certificates"
  cp -rp /usr/local/share/ca-certificates/. "$directory/usr/local/share/ca-certificates/" 2>/dev/null || true
  while read -r name; do [[ $name == /etc/ssl/certs/* ]] || give "$name"; done < <(
    sed -n 's/^ *cafile *= *"\?\([^"]*\)"\?$/\1/p' ~/.npmrc /etc/npmrc /usr/etc/npmrc 2>/dev/null
    printf '%s\n' "${NODE_EXTRA_CA_CERTS:-}" "${SSL_CERT_FILE:-}" "${npm_config_cafile:-}")
}

clone() {
  local commit to=$directory/srv/weir
  commit=$(git -C "$source_tree" rev-parse HEAD)
  [[ -z $(git -C "$source_tree" status --porcelain) ]] || say "what is not committed is not tried"
  if [[ -d $to ]]; then git -C "$to" fetch -q "$source_tree" HEAD; else git clone -q --no-hardlinks "$source_tree" "$to"; fi
  git -C "$to" checkout -q --force --detach "$commit"
  say "the tree is that of $(git -C "$to" log -1 --format='%h (%s)')"
}

# What ctest said, in a few lines: how many, how long, and the names that one has to look at.
summary() {
  local turn=$1 log=$logs/$1-test.log status=$2
  echo "== $turn: ./dev demo $(<"$logs/$turn-demo.status"), ./dev test $status"
  grep -E '^[0-9]+% tests passed|^Total Test time' "$log" | sed 's/^/   /' || echo "   no test ran: see $log"
  echo "   skipped: $(grep -cE '\*\*\*Skipped' "$log" || true)"
  # A line for each try: "12/400 Test #12: NAME ....***Failed  1.2 sec". A name that failed and passed needed a second try.
  sed -nE 's/^ *([0-9]+\/[0-9]+ )?Test +#[0-9]+: ([^ ]+) \.+ *(Passed|\*\*\*[A-Za-z]+).*/\2 \3/p' "$log" |
    awk '$2 == "Passed" { passed[$1] = 1 } $2 ~ /^\*\*\*/ && $2 != "***Skipped" { failed[$1] = $2 }
         END { for (name in failed) printf "   %s: %s\n", passed[name] ? "passed at its second try" : "failed (" substr(failed[name], 4) ")", name }' | sort
}

[[ -e $directory/etc/debian_version ]] || make_debian
give_settings
clone
variables=()
for name in $(compgen -e | grep -iE '^([a-z]+_proxy|npm_config_.*|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|TERM|COLUMNS)$'); do variables+=("$name=${!name}"); done
# Ctrl-C must reach it, though a shell's background processes ignore it.
env --default-signal=INT,QUIT unshare --mount --propagation private --pid --fork --kill-child \
  bash "$here/inside.sh" "$directory" "$logs" "$pattern" "${turns[*]}" "${variables[@]}" &
inside=$!
wait "$inside" || true
inside=''

worst=0
for turn in "${turns[@]}"; do
  status=$(cat "$logs/$turn-test.status" 2>/dev/null) || { echo "== $turn: did not come to its end"; worst=1; continue; }
  [[ $status == passed && $(<"$logs/$turn-demo.status") == passed ]] || worst=1
  summary "$turn" "$status"
done
echo "all that was said: $logs"
exit $worst
