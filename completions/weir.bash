# bash completion for weir: source it, or install it as /usr/share/bash-completion/completions/weir.

_weir() {
  local i glue='' words=() starts=() last
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _weir_offer "${COMP_WORDS[1]}" -W 'run profile sample report view diff export help --version'
    return
  fi

  case ${COMP_WORDS[1]} in
    report) _weir_report && return ;;
    view) _weir_files 'port diff map source-map' '--port= --no-open --fold-inlined --diff= --map= --source-map= --with-waits --without-waits --help' && return ;;
    diff) _weir_files 'threshold level map limit filter' '--threshold= --per-function --level= --totals --map= --limit= --filter= --format= --os-calls= --with-waits --without-waits --fold-inlined --color= --no-pager --help' && return ;;
    export) _weir_files 'thread process map source-map' '--format= --output= --thread= --process= --fold-inlined --diff= --map= --source-map= --with-waits --without-waits --help' && return ;;
  esac

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
      --tool | --json | --function | --return | -o | --output | --cpu | --clock | --paths | --os-calls | --os-model | -p | --pid | --seconds | --cache-mb | --log-file | -F | --frequency | -e | --event | --unwind | --confidence | --source) ((i += 1)) ;;
      -*) ;;
      *) _weir_program "${starts[i]}" && return ;;
    esac
  done

  last=${words[-1]}
  if ((${#words[@]} > 1)) && [[ ${words[-2]} == --@(tool|json|function|return|output|log-file|cpu|clock|paths|os-calls|os-model|pid|seconds|cache-mb|frequency|event|unwind|confidence|source) ]]; then last=${words[-2]}=$last; fi
  case $last in
    --tool=*) _weir_offer "${last#*=}" -W 'none icount memory calls' ;;
    --json=* | --output=* | --log-file=*) _weir_offer "${last#*=}" -f ;;
    --clock=*)
      if [[ ${COMP_WORDS[1]} == sample ]]; then _weir_offer "${last#*=}" -W 'cpu wall'; else _weir_offer "${last#*=}" -W 'cycles instructions wall'; fi
      ;;
    --event=*)
      _weir_offer "${last#*=}" -W 'cycles instructions cache-references cache-misses branches branch-misses stalled-cycles-frontend
        stalled-cycles-backend page-faults minor-faults major-faults context-switches cpu-migrations'
      ;;
    --unwind=*) _weir_offer "${last#*=}" -W 'auto cfi fp heuristic' ;;
    --source=*) _weir_offer "${last#*=}" -W 'auto perf timer' ;;
    --os-calls=*) _weir_offer "${last#*=}" -W 'self separate' ;;
    --os-model=*) _weir_offer "${last#*=}" -W 'measured classes' ;;
    --paths=*) _weir_offer "${last#*=}" -W 'callers full' ;;
    --pid=*) _weir_offer "${last#*=}" -W "$(cd /proc && echo [0-9]*)" ;;
    --function=* | --return=* | --cpu=* | --seconds=* | --cache-mb=* | --frequency=* | --confidence=*) ;;
    -*)
      if [[ ${COMP_WORDS[1]} == profile ]]; then
        _weir_offer "$last" -W '--output= --cpu= --clock= --paths= --os-calls= --os-model= --environment --no-follow --cache-mb= --pid= --seconds= --log-file= --quiet --verbose --help --'
      elif [[ ${COMP_WORDS[1]} == sample ]]; then
        _weir_offer "$last" -W '--frequency= --clock= --event= --unwind= --confidence= --verify --cost --source= --output= --environment --no-follow --pid= --seconds= --log-file= --quiet --verbose --help --'
      else
        _weir_offer "$last" -W '--tool= --stats --json= --blocks --function= --return= --trace --no-follow --no-archive --keep-addresses --cache-mb= --pid= --seconds= --log-file= --quiet --verbose --help --'
      fi
      [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null || true
      ;;
    *) _weir_program "${starts[-1]}" ;;
  esac
}

# The word before the last, without the "=" that bash cuts off.
_weir_before() {
  local i=$((COMP_CWORD - 1))
  [[ ${COMP_WORDS[i]} == = || ${COMP_WORDS[COMP_CWORD]} == = ]] || { _weir_option=${COMP_WORDS[i]} && return; }
  [[ ${COMP_WORDS[i]} == = ]] && i=$((i - 1))
  _weir_option=${COMP_WORDS[i]}
}

# _weir_words: how many words stand before the last that are no options, nor their values.
_weir_words() {
  local i n=0
  for ((i = 2; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --sites | --blocks | --merge-clones | --parts | --fold-inlined | --with-waits | --without-waits | --check | --no-pager | --help) ;;
      -*) [[ ${COMP_WORDS[i + 1]} != = ]] || ((i += 1)); ((i += 1)) ;;
      *) ((n += 1)) ;;
    esac
  done
  _weir_count=$n
}

_weir_report() {
  local _weir_option _weir_count last=${COMP_WORDS[COMP_CWORD]#=}
  _weir_before
  case $_weir_option in
    --format) _weir_offer "$last" -W 'text json csv' ;;
    --os-calls) _weir_offer "$last" -W 'self separate' ;;
    --color) _weir_offer "$last" -W 'auto always never' ;;
    --sort) _weir_offer "$last" -W 'self total calls name image file line self_min self_max os_calls os_time waited waited_total offset size' ;;
    --thread | --process | --filter | --limit | --source-map) ;;
    *)
      _weir_words
      if [[ $last == -* ]]; then
        _weir_offer "$last" -W '--thread= --process= --filter= --sort= --limit= --format= --os-calls= --with-waits --without-waits --cpu= --source-map= --sites --blocks --merge-clones --parts --fold-inlined --check --color=
          --no-pager --help'
        [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null || true
      elif ((_weir_count == 0)); then
        _weir_offer "$last" -f
      elif ((_weir_count == 1)); then
        _weir_offer "$last" -W 'summary functions detail callers source asm tree oscalls waits coverage threads'
      fi
      ;;
  esac
}

# _weir_files VALUES OPTIONS: files, and the options of a verb; those of VALUES take what cannot be offered.
_weir_files() {
  local _weir_option last=${COMP_WORDS[COMP_CWORD]#=}
  _weir_before
  case $_weir_option in
    --format)
      if [[ ${COMP_WORDS[1]} == diff ]]; then _weir_offer "$last" -W 'text markdown json csv'
      else _weir_offer "$last" -W 'html callgrind folded pprof speedscope firefox dot svg csv json llvm bolt'; fi ;;
    --os-calls) _weir_offer "$last" -W 'self separate' ;;
    --color) _weir_offer "$last" -W 'auto always never' ;;
    *)
      [[ " $1 " != *" ${_weir_option#--} "* ]] || return 0
      if [[ $last == -* ]]; then
        _weir_offer "$last" -W "$2"
        [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null || true
      else
        _weir_offer "$last" -f
      fi
      ;;
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
