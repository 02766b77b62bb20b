# bash completion for weir: source it, or install it as /usr/share/bash-completion/completions/weir.

_weir() {
  local i glue='' words=() starts=() last
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _weir_offer "${COMP_WORDS[1]}" -W 'run help --version'
    return
  fi

  # Bash cuts "--tool=icount" at the "=": put such words together again, and remember where they began.
  for ((i = 2; i <= COMP_CWORD; i++)); do
    if [[ $glue || (${COMP_WORDS[i]} == = && ${#words[@]} -gt 0) ]]; then
      words[-1]+=${COMP_WORDS[i]}
      [[ $glue ]] && glue='' || glue=1
    else
      words+=("${COMP_WORDS[i]}")
      starts+=("$i")
    fi
  done

  # Behind the options stands the program, and its arguments complete as they do without Weir.
  for ((i = 0; i < ${#words[@]} - 1; i++)); do
    case ${words[i]} in
      --) _weir_program "${starts[i + 1]}" && return ;;
      --tool | --json) ((i += 1)) ;;
      -*) ;;
      *) _weir_program "${starts[i]}" && return ;;
    esac
  done

  last=${words[-1]}
  if ((${#words[@]} > 1)) && [[ ${words[-2]} == --@(tool|json) ]]; then last=${words[-2]}=$last; fi
  case $last in
    --tool=*) _weir_offer "${last#*=}" -W 'none icount' ;;
    --json=*) _weir_offer "${last#*=}" -f ;;
    -*)
      _weir_offer "$last" -W '--tool= --stats --json= --blocks --no-follow --no-archive --keep-addresses --quiet --help --'
      [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null || true
      ;;
    *) _weir_program "${starts[-1]}" ;;
  esac
}

# _weir_offer WORD COMPGEN-OPTIONS…
_weir_offer() { mapfile -t COMPREPLY < <(compgen "${@:2}" -- "$1"); }

# _weir_program INDEX: the command line that begins there.
_weir_program() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    _weir_offer "${COMP_WORDS[COMP_CWORD]}" -c
  else
    _weir_offer "${COMP_WORDS[COMP_CWORD]}" -f
  fi
}

complete -F _weir weir
