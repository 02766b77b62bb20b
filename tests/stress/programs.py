"""Programs of others, natively and under Weir: the same output, the same status (see program_list.py, and docs/reliability.md for results).

Each task runs natively twice, since one whose outputs differ says nothing, and then under each tool, with a time limit: of what reaches it
the processor time of its last seconds is told (is it slow, or stuck?), and what each thread did goes to ROOM/late-NAME-TOOL. The figures of
each profile must agree with each other (`weir report --check`). Runs start in an empty directory of the same name, in a fixed environment.
`--table` prints all results that are kept."""
import argparse
import ctypes
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
import time

from program_inputs import make_inputs
from program_list import PROGRAMS

PR_SET_CHILD_SUBREAPER = 36
LAST = 3  # seconds
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
    server = subprocess.Popen(['Xvfb', '-displayfd', str(write), '-noreset', '-screen', '0', '800x600x24'], pass_fds=[write], stdout=subprocess.DEVNULL,
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


def descendants(root):
    children = {}
    for path in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            children.setdefault(int(path.read_text().rpartition(')')[2].split()[1]), []).append(int(path.parent.name))
        except OSError:
            pass  # it has just ended
    found = list(children.get(root, []))
    for pid in found:
        found += children.get(pid, [])
    return found


def used_so_far(pids):
    ticks = 0
    for pid in pids:
        try:
            ticks += sum(map(int, pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[11:15]))
        except OSError:
            pass
    return ticks / os.sysconf('SC_CLK_TCK')


def describe_late(child, path):
    """What a run that has reached its time limit is at."""
    pids = [child.pid, *descendants(child.pid)]
    before = used_so_far(pids)
    time.sleep(LAST)
    with open(path, 'w') as file:
        for task in (x for pid in pids for x in pathlib.Path(f'/proc/{pid}/task').glob('*')):
            try:
                name, _, rest = (task / 'stat').read_text().rpartition(')')
                print(name, rest[:2], (task / 'wchan').read_text(), (task / 'syscall').read_text().strip(), file=file)
            except OSError:
                pass
    return f'time limit ({len(pids)} processes, {before:.0f} s of processor time, {used_so_far(pids) - before:.1f} in the last {LAST} s)'


def wait(child, known, limit):
    """Meanwhile those that have lost their parents are reaped, as the first process of a system does it."""
    end = time.monotonic() + limit
    while True:
        try:
            return child.wait(0.1)
        except subprocess.TimeoutExpired:
            if time.monotonic() > end:
                raise
        for pid in map(int, pathlib.Path('/proc/thread-self/children').read_text().split()):
            if pid != child.pid and pid not in known:
                os.waitpid(pid, os.WNOHANG)


def end_orphans(known):
    """What a run has left behind: it is ours, as we are the one that reaps it (see main)."""
    while orphans := [x for x in descendants(os.getpid()) if x not in known]:
        for pid in orphans:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass  # not a child of ours, until its parent has ended
        time.sleep(0.01)


def run(program, tool, prefix, room, limit, display=''):
    """What a run leaves: its output, status and files; and the processor time that it took."""
    known = descendants(os.getpid())
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
            status = wait(child, known, limit)
        except subprocess.TimeoutExpired:
            status = describe_late(child, room / f'late-{program.name}-{tool}')
        try:
            os.killpg(child.pid, signal.SIGKILL)  # what it left behind, too
        except ProcessLookupError:
            pass
        child.wait()
    end_orphans(known)
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
    result = {'version': version_of(program.packages[0]), 'native': 0, 'tools': {}, 'note': ''}
    first, seconds = run(program, 'natively', [], room, options.limit, display)
    again, result['native'] = run(program, 'natively', [], room, options.limit, display)
    result['native'] = min(seconds, result['native'])
    if found := difference(first, again):
        result['note'] = f'natively it differs: {found}'
        return result
    if str(first['status']).startswith('time limit') or not (first['out'].strip() or first['files']):
        result['note'] = f'natively: status {first["status"]}, {(room / "err").read_bytes()[-200:].decode(errors="replace")!r}'
        return result
    for tool in filter(None, options.tools.split(',')):
        result['tools'][tool] = try_tool(program, tool, first, options, room, display)
    return result


def try_tool(program, tool, expected, options, room, display):
    profile = room / 'x.weir'
    profile.unlink(missing_ok=True)
    store = ['-o', str(profile)] if tool in ('profile', 'sample') else []
    got, seconds = run(program, tool, [options.weir, *TOOLS[tool], *store, '--'], room, options.weir_limit or options.limit * 10, display)
    result = {'seconds': seconds, 'verdict': '', 'note': ''}
    if found := difference(expected, got):
        result['verdict'] = 'time limit' if str(got['status']).startswith('time limit') else 'differs'
        words = (room / 'err').read_bytes().decode(errors='replace').splitlines()
        said = [x for x in words if x.startswith('weir:')] or words[-1:]
        result['note'] = f'{found}; {" ".join(said)[:300]}'
    elif store:
        check = subprocess.run([options.weir, 'report', '--check', str(profile)], capture_output=True, text=True)
        if check.returncode:
            kept = profile.rename(room / f'broken-{program.name}-{tool}.weir')
            lines = check.stdout.partition('\nbroken ')[2].splitlines()[1:] + check.stderr.splitlines()
            result['verdict'] = 'check'
            result['note'] = f'{kept.name}: {"; ".join(" ".join(x.split()) for x in [*lines[:2], *lines[-1:]])}'
    return result


def cell_of(result, tool):
    if tool not in result['tools']:
        return '–'
    found = result['tools'][tool]
    if found['verdict'] == 'time limit':
        return 'time limit'
    times = f'{found["seconds"] / max(result["native"], 0.001):.1f}'
    return f'{times} **{found["verdict"]}**' if found['verdict'] else times


def notes_of(result):
    notes = [result['note']] + [f'{tool}: {x["note"]}' for tool, x in result['tools'].items() if x['note']]
    return [x for x in notes if x]


def line_of(program, result):
    compared = ', '.join(['output', *program.files])
    cells = ' | '.join(cell_of(result, tool) for tool in TOOLS)
    return f'| {program.kind} | {program.name} {result["version"]} | {compared} | {result["native"]:.3f} | {cells} |'


def print_table(results):
    print('| kind | program | compared | CPU s natively | × run | × icount | × profile | × sample |\n|---|---|---|---|---|---|---|---|')
    tried = [x for x in PROGRAMS if x.name in results]
    for program in tried:
        if results[program.name]['tools']:
            print(line_of(program, results[program.name]))
    for program in tried:
        for note in notes_of(results[program.name]):
            print(f'{program.name}: {note}')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--weir', default='build/weir', type=os.path.realpath)
    parser.add_argument('--only', action='append', default=[], metavar='NAME', help='a name, a pattern of names, or a kind')
    parser.add_argument('--tools', default=','.join(TOOLS), help='of ' + ', '.join(TOOLS))
    parser.add_argument('--limit', default=30, type=float, help='seconds for a native run (default: %(default)s)')
    parser.add_argument('--weir-limit', type=float, metavar='SECONDS', help='for a run under Weir (default: ten times --limit)')
    parser.add_argument('--results', default='build/stress-programs.json', type=pathlib.Path, help='where they are kept (default: %(default)s)')
    parser.add_argument('--room', help='where to work, kept (default: a temporary directory)')
    parser.add_argument('--table', action='store_true', help='print the results that are there')
    options = parser.parse_args()
    store = options.results
    results = json.loads(store.read_text()) if store.exists() else {}
    if options.table:
        return print_table(results)
    chosen = [x for x in PROGRAMS if not options.only or any(fnmatch.fnmatch(x.name, o) or o == x.kind for o in options.only)]
    room = pathlib.Path(options.room or tempfile.mkdtemp(prefix='weir-programs.'))
    for name in ('home', 'tmp', 'in', 'cache'):
        (room / name).mkdir(parents=True, exist_ok=True)
    make_inputs(room / 'in')
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what the programs leave behind is ours to end
    server, display, bad = None, '', 0
    if any(x.needs == 'x' for x in chosen) and not install(['xvfb']):
        server, display = start_display()
    try:
        for program in chosen:
            if missing := install(program.packages):
                print(f'{program.name}: skipped, no package {" ".join(missing)}', flush=True)
                continue
            result = try_program(program, options, room, display)
            bad += bool(notes_of(result))
            print(line_of(program, result), *notes_of(result), sep='\n    ', flush=True)
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
