# What bash completes is what the verbs tell of their options: all of them, those that take values with a "=", and of choices each.
. "$(dirname "$0")/lib.sh"
. "$HERE/../../completions/weir.bash"
_command_offset() { COMPREPLY=("program at $1"); }  # (as bash-completion has it)

# offered WORDS…: what is offered for the last of them, a line each, sorted.
offered() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _weir 2>/dev/null
  printf '%s\n' "${COMPREPLY[@]}" | sort -u
}

"$WEIR" help | sed -nE 's/^  weir ([a-z]+)  .*/\1/p' | sort -u >"$T/verbs"
(($(wc -l <"$T/verbs") >= 8)) || fail "weir help tells of $(<"$T/verbs")"
diff "$T/verbs" <(offered weir '' | grep -v '^--') >"$T/diff" || fail "verbs: $(<"$T/diff")"

while read -r verb; do
  [[ $verb != help ]] || continue
  "$WEIR" "$verb" --help >"$T/help"
  # Of each option: its short name or -, its long name, and its value, or nothing. ("  -o,--output FILE   what it does")
  sed -nE 's/^  (-([A-Za-z]),)?(--[a-z-]+)( ([[A-Z][^ ]*))?( .*)?$/\2 \3 \5/p' "$T/help" | sed 's/^ /- /' >"$T/options"
  (($(wc -l <"$T/options") >= 8)) || fail "$verb: $(<"$T/options") are all?"

  awk '{ print $2 ($3 == "" ? "" : "=") }' "$T/options" | sort -u >"$T/expected"
  case $verb in run | profile | sample) file=() ;; *) file=(some.weir) ;; esac
  diff "$T/expected" <(offered weir "$verb" "${file[@]}" -- | grep -vx -- --) >"$T/diff" || fail "$verb: $(<"$T/diff")"

  while read -r short long value; do
    [[ -n $value ]] || continue
    if [[ $value == *:{* ]]; then
      tr , '\n' <<<"${value#*:}" | sed -E 's/\{|\}.*//g' | sort -u >"$T/expected"
      diff "$T/expected" <(offered weir "$verb" "${file[@]}" "$long" =) >"$T/diff" || fail "$verb $long=: $(<"$T/diff")"
      diff "$T/expected" <(offered weir "$verb" "${file[@]}" "$long" '') >"$T/diff" || fail "$verb $long: $(<"$T/diff")"
    fi
    # Behind the value stands the program, or the profile.
    for option in "$long" "-$short"; do
      [[ $option != -- ]] || continue
      case $verb in
        run | profile | sample)
          [[ $(offered weir "$verb" "$option" value ech) == "program at 4" ]] || fail "$verb: $option takes a value"
          ;;
        report) [[ $(offered weir report "$option" value some.weir su) == summary ]] || fail "$verb: $option takes a value" ;;
      esac
    done
  done <"$T/options"
  # … and behind a flag.
  while read -r _ long value; do
    [[ -z $value && $long != --help ]] || continue
    case $verb in
      run | profile | sample) [[ $(offered weir "$verb" "$long" ech) == "program at 3" ]] || fail "$verb: $long takes no value" ;;
      report) [[ $(offered weir report "$long" some.weir su) == summary ]] || fail "$verb: $long takes no value" ;;
    esac
  done <"$T/options"
done <"$T/verbs"
