"""Stand-ins for a user's files: data sets and pretrained weights.

Data sets are shortened for commands, and made up if a user's program would download them. Tiny
models have the names of weights that no test machine has.
"""

import itertools
import json
import pathlib

import tiny
from json_files import cases
from script_runs import ROOT
from toy_data import write_letters, write_task
from variant_models import MAKERS

from bert import BertForPreTraining, BertTokenizer
from gpt import OpenAIGPTConfig, OpenAIGPTLMHeadModel, OpenAIGPTTokenizer
from gpt2 import GPT2Config, GPT2LMHeadModel, GPT2Tokenizer
from model_zoo.pretrained import list_pretrained
from model_zoo.tasks.classification_data import get_task, list_tasks
from model_zoo.tokenization.learn import learn_byte_pairs
from transfo_xl import TransfoXLLMHeadModel, TransfoXLTokenizer

FIXTURES = ROOT / 'tests' / 'fixtures'

#: a peer's name of a model -> the family of its tiny model
PEERS_NAMES = cases('commands')['PEERS_NAMES']


def shorten_text(path, copy, documents=4, lines=40):
    """Write the first lines of each of the first documents of a text to `copy`."""
    parts = path.read_text('utf-8').split('\n\n')[:documents]
    short = ('\n'.join(part.splitlines()[:lines]) for part in parts)
    copy.write_text('\n\n'.join(short) + '\n', 'utf-8')


def make_downloads(folder):
    """Make up the data sets that programs download: a folder for each task, and SQuAD."""
    for name in list_tasks():
        write_task(folder / name, get_task(name))
    text = 'Red birds sing in the morning. Blue fish swim at night.'
    for version, part in itertools.product(('1.1', '2.0'), ('train', 'dev')):
        questions = [
            {
                'id': f'{part}{number}',
                'question': 'What sings?',
                'is_impossible': not answers,
                'answers': answers,
            }
            for number, answers in enumerate(
                [[{'text': 'Red birds', 'answer_start': 0}], []][: 2 if version == '2.0' else 1] * 4
            )
        ]
        article = {'title': 'made up', 'paragraphs': [{'context': text, 'qas': questions}]}
        path = folder / 'squad' / f'{part}-v{version}-part.json'
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({'version': version, 'data': [article]}))


class TinyModels:
    """Tiny models of all families, each made at its first use.

    Parameters
    ----------
    folder : pathlib.Path
    data_dir : pathlib.Path or None
        Folder with the real vocabularies; without it, small ones are learned.
    vocab : pathlib.Path or None
        BERT's vocabulary.
    """

    def __init__(self, folder, data_dir=None, vocab=None):
        self._folder = folder
        self._data_dir = data_dir
        self._vocab = vocab or FIXTURES / 'checkpoints' / 'bert_tensorflow' / 'vocab.txt'

    def folder(self, family, format='native'):
        """Return the folder of a family's tiny model, written in `format`."""
        folder = self._folder / format / family
        if not folder.exists():
            make = MAKERS.get(family) or getattr(self, f'_{family}')
            block, tokenizer = make(folder.parent / f'{family}_vocab')
            tiny.initialized(block, 0.05).save_pretrained(str(folder), tokenizer, format=format)
            if family == 'bert':
                (folder / 'bert_config.json').write_text((folder / 'config.json').read_text())
        return folder

    def fill_cache(self, root):
        """Make links to the models in the cache `root`, under all names but MiniLM's."""
        root.mkdir(parents=True)
        for entry in list_pretrained():
            if entry.package is None:
                (root / entry.full_name).symlink_to(self.folder(entry.family))

    def fill_hub_cache(self, folder, minilm_dir):
        """Make huggingface_hub's cache with the models that `PEERS_NAMES` names, and MiniLM."""
        for name, family in PEERS_NAMES.items():
            if family != 'transfo_xl':  # transformers reads pickles of it only
                _add_to_hub_cache(folder, name, self.folder(family, 'huggingface'))
        _add_to_hub_cache(folder, 'sentence-transformers/all-MiniLM-L6-v2', minilm_dir)

    def _bert(self, folder):
        tokenizer = BertTokenizer(str(self._vocab))
        sizes = {'num_hidden_layers': 4, 'num_attention_heads': 4, 'max_position_embeddings': 512}
        return BertForPreTraining(tiny.bert_config(len(tokenizer.vocab), **sizes)), tokenizer

    def _gpt2(self, folder):
        if self._data_dir:
            source = self._data_dir / 'vocab' / 'gpt2'
            files = [source / 'encoder.json', source / 'vocab.bpe']
        else:
            files = [learn_byte_pairs(ROOT / 'README.rst', 500, folder), folder / 'merges.txt']
        tokenizer = GPT2Tokenizer(*map(str, files))
        config = tiny.decoder_config(GPT2Config, len(tokenizer.vocab), n_positions=1024)
        return GPT2LMHeadModel(config), tokenizer

    def _gpt(self, folder):
        if self._data_dir:
            source = self._data_dir / 'vocab' / 'openai-gpt'
            files = [source / 'encoder_bpe_40000.json', source / 'vocab_40000.bpe']
        else:
            folder.mkdir(parents=True)
            files = write_letters(folder, [chr(number) for number in range(33, 127)])
        tokenizer = OpenAIGPTTokenizer(*map(str, files))
        config = tiny.decoder_config(OpenAIGPTConfig, len(tokenizer.vocab), n_positions=512)
        return OpenAIGPTLMHeadModel(config), tokenizer

    def _transfo_xl(self, folder):
        tokenizer = TransfoXLTokenizer(special=['<unk>', '<eos>'])
        text = (ROOT / 'README.rst').read_text('utf-8')
        tokenizer.count_sents([line.split() for line in text.splitlines()])
        tokenizer.build_vocab()
        size = len(tokenizer)
        config = tiny.transfo_xl_config(
            size, cutoffs=[size // 4, size // 2], div_val=2, tgt_len=16, mem_len=16
        )
        return TransfoXLLMHeadModel(config), tokenizer


def _add_to_hub_cache(cache, name, files):
    """Put a model's folder into a cache as huggingface_hub does."""
    repository = cache / f'models--{name.replace("/", "--")}'
    snapshot = repository / 'snapshots' / ('0' * 40)
    (repository / 'refs').mkdir(parents=True)
    (repository / 'refs' / 'main').write_text(snapshot.name)
    snapshot.mkdir(parents=True)
    for path in pathlib.Path(files).iterdir():
        if path.is_file():
            (snapshot / path.name).symlink_to(path)
