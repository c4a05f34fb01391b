"""Try to break the project: ``python tests/audit --minutes 10``, or ``make audit MINUTES=10``.

Each part does to the project what strangers, broken disks and mistakes do to it: `files` damages
every kind of file that is read, `texts` gives hostile texts to tokenizers, pipelines and commands,
`calls` calls the public API with wrong arguments, `kills` kills trainings and has them go on,
`systems` takes disk, rights, time and files away, and plays another user. A good outcome is a right
result, or a refusal in one line of the project's own; all else has failed. An attempt is a number
that is drawn from its seed, so that it can be repeated: ``python tests/audit --again FOLDER`` of
the files that were kept.
"""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ORIGINALS = HERE.parents[1] / 'scripts' / 'originals'
sys.path[:0] = [
    str(path) for path in
    (HERE.parents[1], HERE.parent, HERE.parent / 'scripts', ORIGINALS, ORIGINALS / 'pytorchic_bert')
]

os.environ.setdefault('HF_HUB_OFFLINE', '1')  # nothing here is of a network

from pool import Pool  # noqa: E402
from target import FAILED, OUTCOMES, judge  # noqa: E402

import model_zoo  # noqa: E402, F401  sets MXNet's threads before it loads

#: part -> its share of the time
PARTS = {'files': 45, 'texts': 10, 'calls': 15, 'kills': 15, 'systems': 10}


class Table:
    """What was tried, and how it went."""

    def __init__(self, targets, seed, attempts):
        self.seed, self.started, self.targets = seed, time.time(), targets
        self.end = float('inf') if attempts is None else seed + attempts
        self.rows = {name: dict.fromkeys(OUTCOMES, 0) for name in targets}
        self.next = dict.fromkeys(targets, seed)
        self.spent = dict.fromkeys(targets, 0.0)
        self.busy = {}
        self.failures = []

    def choose(self):
        """The target that has had least of its share, its next seed, and how many of these."""
        def progress(name):
            part = name.partition('/')[0]
            same = [each for each in self.rows if each.partition('/')[0] == part]
            spent = sum(self.spent[each] + self.busy.get(each, 0) for each in same)
            return spent / PARTS[part], self.spent[name] + self.busy.get(name, 0), name

        left = [name for name in self.rows if self.next[name] < self.end]
        if not left:
            return None
        name = min(left, key=progress)
        self.busy[name] = self.busy.get(name, 0) + 1
        first = self.next[name]
        count = min(self.targets[name].batch, self.end - first)
        self.next[name] = first + count
        return name, first, count

    def tell(self, name, seed, outcome, why):
        if outcome is None:
            self.spent[name] += why
            self.busy[name] -= 1
            return
        self.rows[name][outcome] += 1
        if outcome == FAILED:
            self.failures.append({'target': name, 'seed': seed, 'why': why})
            last = why.strip().splitlines()[-1]
            print(f'failed: {name}, seed {seed}: {last:.300}', flush=True)

    def total(self, outcome):
        return sum(row[outcome] for row in self.rows.values())

    def __str__(self):
        names = ('tried', *OUTCOMES)
        rows = [('', *names)]
        counts = {**self.rows, 'all': {each: self.total(each) for each in OUTCOMES}}
        for name, row in counts.items():
            if sum(row.values()):
                rows.append((name, sum(row.values()), *row.values()))
        widths = [max(len(str(row[place])) for row in rows) for place in range(len(names) + 1)]
        lines = []
        for first, *others in rows:
            cells = [f'{each:>{width}}' for each, width in zip(others, widths[1:])]
            lines.append('  '.join([f'{first:<{widths[0]}}', *cells]))
        return '\n'.join(lines)

    def write(self, path):
        content = {
            'seed': self.seed,
            'seconds': round(time.time() - self.started, 1),
            'tried': sum(map(self.total, OUTCOMES)),
            **{each: self.total(each) for each in OUTCOMES},
            'targets': {name: row for name, row in self.rows.items() if sum(row.values())},
            'failures': self.failures,
        }
        path.write_text(json.dumps(content, indent=2) + '\n')


def find_targets(parts, only):
    """Name -> target, of the parts whose libraries are here."""
    targets = {}
    for part in parts:
        found = importlib.import_module(part).targets()
        targets.update((each.name, each) for each in found if only in each.name)
    return targets


def repeat(folder, targets):
    """Repeat a kept attempt in this process; returns the exit status."""
    case = json.loads((folder / 'case.json').read_text())
    target, kept = targets[case['target']], folder / 'attempt'
    with tempfile.TemporaryDirectory(prefix='audit-') as temporary:
        shared = target.prepare(pathlib.Path(temporary))
        if target.again and kept.is_dir():
            work = shutil.copytree(kept, pathlib.Path(temporary, 'again'), symlinks=True)
            outcome, why = judge(lambda: target.again(shared, work))
        else:
            attempt = pathlib.Path(temporary, 'again')
            outcome, why = target.outcome(shared, case['seed'], attempt)
    print(f'{outcome}: {why}')
    return outcome == FAILED


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--minutes', type=float, default=10)
    parser.add_argument('--seed', type=int, default=0, help='the first attempt of each target')
    parser.add_argument('--attempts', type=int, help='so many of each target at most')
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--parts', nargs='+', choices=PARTS, default=[*PARTS])
    parser.add_argument('--only', default='', help='targets whose names have this in them')
    parser.add_argument('--output_dir', type=pathlib.Path, default='output_dir/audit')
    parser.add_argument('--again', type=pathlib.Path, metavar='FOLDER', help='repeat a failure')
    args = parser.parse_args()
    targets = find_targets(args.parts, args.only)
    if args.again:
        return repeat(args.again, targets)
    if not targets:
        parser.error(f'no target has {args.only!r} in its name')
    args.output_dir.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(args.output_dir / 'failed', ignore_errors=True)  # of an earlier run
    folder, table = pathlib.Path(tempfile.mkdtemp(prefix='audit-')), Table(
        targets, args.seed, args.attempts
    )
    pool = Pool(targets, folder, args.output_dir / 'failed', args.workers)
    status = 0
    try:
        pool.run(table.choose, table.tell, time.monotonic() + 60 * args.minutes)
    except KeyboardInterrupt:
        status = 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table)
    table.write(args.output_dir / 'audit.json')
    if table.failures:
        print(f'what failed is in {args.output_dir / "failed"}: repeat with --again FOLDER')
    return status or int(bool(table.failures))


if __name__ == '__main__':
    sys.exit(main())
