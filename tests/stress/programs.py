"""Programs of others, natively and under Weir: the same output, the same status (see program_list.py, and docs/reliability.md for results).

Each task runs natively twice, since one whose outputs differ says nothing, and then under each tool, with a time limit. Runs start in an
empty directory of the same name, in a fixed environment. The results are kept in build/stress-programs.json; `--table` prints them all."""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from program_inputs import make_inputs
from program_list import PROGRAMS

TOOLS = {'run': ['run', '-q'], 'icount': ['run', '-q', '--tool=icount'], 'profile': ['profile', '-q'], 'sample': ['sample', '-q']}


def install(packages):
    """Those that cannot be had are returned."""
    query = subprocess.run(['dpkg-query', '-W', '-f', '${db:Status-Status} ${Package}\n', *packages], capture_output=True, text=True)
    missing = [x for x in packages if f'installed {x}\n' not in query.stdout]
    if not missing:
        return []
    apt = ['apt-get', 'install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300', *missing]
    if os.geteuid() != 0:
        apt.insert(0, 'sudo')
    print(f'installing {" ".join(missing)}', file=sys.stderr)
    done = subprocess.run(apt, env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'}, stdin=subprocess.DEVNULL, capture_output=True)
    return missing if done.returncode else []


def start_display():
    """An X server, which says which display it has found free."""
    read, write = os.pipe()
    server = subprocess.Popen(['Xvfb', '-displayfd', str(write), '-screen', '0', '800x600x24'], pass_fds=[write], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as answer:
        return server, ':' + answer.readline().strip()


def version_of(package):
    query = subprocess.run(['dpkg-query', '-W', '-f', '${Version}', package], capture_output=True, text=True)
    return query.stdout.split('+')[0].split('-')[0].split(':')[-1]


def processor_time():
    """Of all children that have ended: other than the time that passes, it does not depend on who else uses the machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(program, prefix, room, limit, display=''):
    """What a run leaves: its output, status and files; and the processor time that it took."""
    directory = room / 'cwd'
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    environment = {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin:/usr/games:/usr/lib/wine', 'HOME': str(room / 'home'), 'LC_ALL': 'C.UTF-8', 'TZ': 'UTC',
                   'TMPDIR': str(room / 'tmp'), 'IN': str(room / 'in'), 'XDG_RUNTIME_DIR': str(room / 'tmp'),
                   'XDG_CACHE_HOME': str(room / 'cache')}
    if program.needs == 'x':
        environment['DISPLAY'] = display
    begin = processor_time()
    with open(room / 'out', 'wb') as out, open(room / 'err', 'wb') as err:
        child = subprocess.Popen([*prefix, 'sh', '-c', program.command], cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=err, start_new_session=True)
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            status = 'time limit'
        try:
            os.killpg(child.pid, signal.SIGKILL)  # what it left behind, too
        except ProcessLookupError:
            pass
        child.wait()
    seconds = processor_time() - begin
    files = {}
    for name in program.files:
        path = directory / name
        files[name] = hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else 'missing'
    return {'status': status, 'out': (room / 'out').read_bytes().decode(errors='replace'), 'files': files}, seconds


def difference(expected, got):
    for part in ('status', 'out', 'files'):
        if expected[part] != got[part]:
            if part != 'out':
                return f'{part}: {expected[part]} and {got[part]}'
            pairs = zip(expected['out'].splitlines() + ['(end)'], got['out'].splitlines() + ['(end)'])
            return 'out: ' + next((f'{a[:150]!r} and {b[:150]!r}' for a, b in pairs if a != b), 'longer')
    return ''


def try_program(program, options, room, display):
    result = {'version': version_of(program.packages[0]), 'kind': program.kind, 'native': 0, 'tools': {}, 'notes': []}
    first, seconds = run(program, [], room, options.limit, display)
    again, result['native'] = run(program, [], room, options.limit, display)
    result['native'] = min(seconds, result['native'])
    if found := difference(first, again):
        result['notes'].append(f'natively it differs: {found}')
        return result
    if first['status'] == 'time limit' or not (first['out'].strip() or first['files']):
        result['notes'].append(f'natively: status {first["status"]}, {(room / "err").read_bytes()[-200:].decode(errors="replace")!r}')
        return result
    for tool in filter(None, options.tools.split(',')):
        store = ['-o', str(room / 'x.weir')] if tool in ('profile', 'sample') else []
        got, seconds = run(program, [options.weir, *TOOLS[tool], *store, '--'], room, options.limit * 10, display)
        found = difference(first, got)
        result['tools'][tool] = {'times': seconds / max(result['native'], 0.01), 'same': not found}
        if found:
            words = (room / 'err').read_bytes().decode(errors='replace').splitlines()
            said = [x for x in words if x.startswith('weir:')] or words[-1:]
            result['notes'].append(f'{tool}: {found}; {" ".join(said)[:300]}')
    return result


def line_of(name, result):
    cells = [f'{result["tools"][t]["times"]:.1f}' + ('' if result['tools'][t]['same'] else ' **differs**') if t in result['tools'] else '–' for t in TOOLS]
    return f'| {result["kind"]} | {name} {result["version"]} | {result["native"]:.2f} | ' + ' | '.join(cells) + ' |'


def print_table(results):
    print('| kind | program | CPU s natively | × run | × icount | × profile | × sample |\n|---|---|---|---|---|---|---|')
    for program in PROGRAMS:
        if program.name in results:
            print(line_of(program.name, results[program.name]))
    for name, result in results.items():
        for note in result['notes']:
            print(f'{name}: {note}')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--weir', default='build/weir', type=os.path.realpath)
    parser.add_argument('--only', action='append', default=[], metavar='NAME', help='a name, a pattern of names, or a kind')
    parser.add_argument('--tools', default=','.join(TOOLS), help='of ' + ', '.join(TOOLS))
    parser.add_argument('--limit', default=30, type=float, help='seconds for a native run, and ten times as many for one under Weir (default: %(default)s)')
    parser.add_argument('--room', help='where to work, kept (default: a temporary directory)')
    parser.add_argument('--table', action='store_true', help='print the results that are there')
    options = parser.parse_args()
    store = pathlib.Path('build/stress-programs.json')
    results = json.loads(store.read_text()) if store.exists() else {}
    if options.table:
        return print_table(results)
    chosen = [x for x in PROGRAMS if not options.only or any(fnmatch.fnmatch(x.name, o) or o == x.kind for o in options.only)]
    room = pathlib.Path(options.room or tempfile.mkdtemp(prefix='weir-programs.'))
    for name in ('home', 'tmp', 'in', 'cache'):
        (room / name).mkdir(parents=True, exist_ok=True)
    make_inputs(room / 'in')
    server, display, bad = None, '', 0
    if any(x.needs == 'x' for x in chosen) and not install(['xvfb']):
        server, display = start_display()
    try:
        for program in chosen:
            if missing := install(program.packages):
                print(f'{program.name}: skipped, no package {" ".join(missing)}', flush=True)
                continue
            result = try_program(program, options, room, display)
            bad += bool(result['notes'])
            print(line_of(program.name, result), *result['notes'], sep='\n    ', flush=True)
            results = json.loads(store.read_text()) if store.exists() else {}
            old = results.get(program.name, {'tools': {}})
            result['tools'] = {**old['tools'], **result['tools']}
            results[program.name] = result
            store.write_text(json.dumps(results, indent=1))
    finally:
        if server:
            server.terminate()
        if not options.room:
            shutil.rmtree(room, ignore_errors=True)
    print(f'{len(chosen)} programs, {bad} with something to look at')
    sys.exit(bad > 0)


if __name__ == '__main__':
    main()
