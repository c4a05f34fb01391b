"""Samples that are made on a Ray cluster: the same as on this machine alone."""

import json

import pytest
from ray_alone import ROOT, run_alone
from script_runs import load_script, run

COMMANDS = """
import json, subprocess, sys
done = [subprocess.run([sys.executable, *words], stdout=2) for words in json.loads(sys.argv[1])]
print(json.dumps([each.returncode for each in done]))
"""


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
def test_ray_writes_the_same_files(fixtures, tmp_path):
    source, texts = fixtures / 'pretraining', tmp_path / 'long.txt'
    texts.write_text((source / 'sample_text.txt').read_text() * 10)
    job = f'create_pretraining_data --input_file {texts} --max_length 32 --num_outputs 3'.split()
    job += ['--vocab', source / 'vocab.txt', '--output_dir']
    command = [ROOT / 'scripts' / 'zoo.py', *job, tmp_path / 'ray', '--ray', 'local']
    assert run_alone('-c', COMMANDS, json.dumps([list(map(str, command))])) == [0]
    assert run(load_script('zoo'), *job, tmp_path / 'alone', '--num_workers', 1) == 0
    assert contents(tmp_path / 'alone') == contents(tmp_path / 'ray') != {}
