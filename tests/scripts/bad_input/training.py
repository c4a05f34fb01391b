"""Of scripts that train one of the `contract`'s toys."""

import json
import re

from contract import SIZES, bert, classifier, sentences, squad

from .case import BadInput, named

__all__ = ['TRAINING']


def change(argv, flag, *values):
    """`argv` with other values after `flag`, up to the next flag."""
    place = argv.index(flag)
    end = next((i for i in range(place + 1, len(argv)) if argv[i].startswith('--')), len(argv))
    return argv[: place + 1] + list(values) + argv[end:]


def load(argv, *more):
    return [word for word in argv if word != '--from_scratch'] + list(more)


def classifier_arguments(data, folder, edit):
    (folder / 'file').write_text('')
    (folder / 'latin.tsv').write_bytes('label\ttext\npos\tcaf\xe9\n'.encode('latin-1'))
    (folder / 'label.tsv').write_text('label\ttext\nso-so\tthe film\n')
    (folder / 'cut.params').write_bytes(b'\x12\x01' + bytes(6) + bytes(8) + b'\x05' + bytes(7))
    return edit(classifier(data, folder / 'out'), folder)


CLASSIFIER = [
    (lambda a, t: change(a, '--task_name', 'NoTask'), 'text_columns|train_file'),
    (lambda a, t: ['--task_name', 'NoTask'], "unknown task 'NoTask'; known: .*MRPC.*custom"),
    (lambda a, t: ['--task_name', 'MRPC', '--data_dir', f'{t}/no'], 'no train set.*not a folder'),
    (
        lambda a, t: ['--task_name', 'MRPC', '--data_dir', str(t), '--only_inference'],
        'no dev set of MRPC: .* has no such file',
    ),
    (lambda a, t: [*a, '--dev_split', '0.1'], '--dev_split goes with .* without a dev file'),
    (lambda a, t: [*a, '--text_column', 'text'], '--text_columns and --text_column both'),
    (lambda a, t: [*a, '--bert_model', 'bert_1'], "pretrained model 'bert_1'; known: "),
    (lambda a, t: [*a, '--bert_dataset', 'no_such'], 'no_such'),
    (lambda a, t: [*a, '--gpu', '0'], '--gpu 0'),
    (lambda a, t: [*a, '--optimizer', 'none'], "unknown optimizer 'none'; known: .*bertadam"),
    (lambda a, t: [*a, '--epochs', '0'], '--epochs 0'),
    (lambda a, t: [*a, '--batch_size', '0'], '--batch_size 0: give 1'),
    (lambda a, t: [*a, '--dev_batch_size', '0'], '--dev_batch_size 0: give 1'),
    (lambda a, t: [*a, '--log_interval', '0'], '--log_interval 0: give 1'),
    (lambda a, t: [*a, '--early_stop', '0'], '--early_stop 0: give 1'),
    (lambda a, t: [*a, '--round_to', '0'], '--round_to 0: give 1'),
    (lambda a, t: [*a, '--accumulate', '-1'], '--accumulate -1: give 1 or more'),
    (lambda a, t: [*a, '--warmup_ratio', '1.5'], '--warmup_ratio 1.5: give'),
    (lambda a, t: [*a, '--lr', '-1'], '--lr -1.0: give'),
    (lambda a, t: [*a, '--keep_checkpoints', '0'], '--keep_checkpoints 0: give 1'),
    (lambda a, t: [*a, '--max_len', '41'], '--max_len 41: the model takes 40'),
    (lambda a, t: [*a, '--max_len', '2'], 'a length of 2 is too small'),
    (lambda a, t: [*a, '--hparams', 'num_layers'], "--hparams 'num_layers'"),
    (lambda a, t: [*a, '--hparams', 'layers=2'], "no option 'layers'"),
    (lambda a, t: [*a, '--hparams', 'units=33,num_heads=2'], 'multiple'),
    (lambda a, t: [*a, '--resume', '--only_inference'], '--resume'),
    (lambda a, t: [*a, '--deploy'], '--deploy needs --only_inference'),
    (lambda a, t: [*a, '--model_prefix', 'x'], '--model_prefix needs --deploy'),
    (
        lambda a, t: [*a, '--deploy', '--only_inference', '--model_prefix', f'{t}/x'],
        'x-symbol.json',
    ),
    (lambda a, t: [*a, '--model_parameters', f'{t}/none.params'], '--from_scratch'),
    (lambda a, t: load(a, '--model_parameters', f'{t}/none.params'), '--model_parameters'),
    (lambda a, t: load(a, '--model_parameters', f'{t}/cut.params'), 'cut.params.*damaged'),
    (lambda a, t: load(a, '--pretrained_bert_parameters', f'{t}/n.params'), 'n.params'),
    (lambda a, t: [*a, '--bert_model', f'{t}/no/folder'], '/no/folder.: no such folder'),
    (lambda a, t: [*a, '--bert_model', str(t)], 'from_scratch'),
    (lambda a, t: change(a, '--vocab_file', f'{t}/no.txt'), "--vocab_file '.*no.txt': no such"),
    (lambda a, t: change(a, '--output_dir', f'{t}/file'), "cannot write to directory '.*file'"),
    (lambda a, t: change(a, '--train_file', f'{t}/no.tsv'), "--train_file '.*no.tsv': no such"),
    (lambda a, t: change(a, '--train_file', str(t)), "--train_file '.*': is a directory"),
    (
        lambda a, t: [*a, '--only_inference', '--dev_file', f'{t}/no.tsv'],
        "--dev_file '.*no.tsv': no such file",
    ),
    (lambda a, t: change(a, '--train_file', f'{t}/file'), 'empty'),
    (lambda a, t: change(a, '--dev_file', f'{t}/file'), 'empty'),
    (lambda a, t: change(a, '--dev_file', f'{t}/latin.tsv'), 'latin.tsv, line 2.*UTF-8'),
    (lambda a, t: change(a, '--dev_file', f'{t}/label.tsv'), "line 2: unknown label 'so-so'"),
    (lambda a, t: change(a, '--test_file', f'{t}/latin.tsv'), 'latin.tsv, line 2.*UTF-8'),
    (lambda a, t: change(a, '--text_columns', 'sentence'), "no column 'sentence'; the columns are"),
    (lambda a, t: change(a, '--text_columns', 'a', 'b', 'c'), "text_columns 'a b c': give one"),
    (
        lambda a, t: [*change(a, '--text_columns', '1'), '--label_column', '0'],
        "label_column 0 of .*'label' occurs in the first line only.*--header",
    ),
    (lambda a, t: [*change(a, '--text_columns', '1'), '--label_column='], '--label_column'),
    (lambda a, t: [*a, '--regression'], 'not a number'),
    (lambda a, t: [*a, '--student_layers', '1'], '--student_layers needs --teacher'),
    (lambda a, t: [*a, '--temperature', '3'], '--temperature needs --teacher'),
    (lambda a, t: [*a, '--teacher', f'{t}/no'], "--teacher '.*no': there is no folder"),
    (lambda a, t: [*a, '--teacher', str(t), '--temperature', '0'], '--temperature 0.0: give'),
    (lambda a, t: [*a, '--teacher', str(t), '--teacher_weight', '2'], '--teacher_weight 2.0: give'),
    (lambda a, t: [*a, '--teacher', str(t), '--states_weight', '-1'], '--states_weight -1.0: give'),
    (lambda a, t: [*a, '--teacher', str(t), '--student_layers', '0'], '--student_layers 0: give 1'),
    (lambda a, t: [*a, '--teacher', str(t), '--student_layers', '1'], '--student_layers and '
        '(--vocab_file|--from_scratch) exclude'),
    (lambda a, t: [*a, '--teacher', str(t), '--only_inference'], '--teacher and --only_inf'),
]


def squad_arguments(data, folder, edit):
    content = (data / 'dev-2.json').read_text()
    plain = (data / 'dev-1.json').read_text()
    (folder / 'dev-2.json').write_text(content)
    (folder / 'text.json').write_text('no JSON')
    (folder / 'empty.json').write_text('{}')
    (folder / 'shift.json').write_text(plain.replace('"answer_start": ', '"answer_start": 1'))
    (folder / 'test.json').write_text(re.sub(r', "answers": .*?\]', '', plain).replace(
        ', "is_impossible": false', ''))  # fmt: skip
    question = {'id': 'x', 'question': 'x', 'answers': [{'text': '\x01', 'answer_start': 0}]}
    blank = {'data': [{'paragraphs': [{'context': '\x01', 'qas': [question]}]}]}
    (folder / 'blank.json').write_text(json.dumps(blank))
    return edit(squad(data, folder / 'out'), folder)


SQUAD = [
    (lambda a, t: change(a, '--train_file', f'{t}/no.json'), "--train_file '.*': no such file"),
    (lambda a, t: change(a, '--predict_file', f'{t}'), '--predict_file .*is a directory'),
    (lambda a, t: change(a, '--train_file', f'{t}/text.json'), "text.json': it is not JSON"),
    (lambda a, t: change(a, '--train_file', f'{t}/empty.json'), "the field 'data' is missing"),
    (lambda a, t: change(a, '--train_file', f'{t}/dev-2.json'), 'use --version_2'),
    (lambda a, t: change(a, '--predict_file', f'{t}/dev-2.json'), 'no answer: use --version_2'),
    (lambda a, t: change(a, '--train_file', f'{t}/shift.json'), 'not at its answer_start'),
    (lambda a, t: change(a, '--train_file', f'{t}/blank.json'), 'no paragraph with a word'),
    (lambda a, t: change(a, '--max_seq_length', '49'), '--max_seq_length 49: the model takes'),
    (lambda a, t: change(a, '--max_seq_length', '13'), 'max_seq_length 13: give more than'),
    (lambda a, t: change(a, '--doc_stride', '0'), '--doc_stride 0: give 1'),
    (lambda a, t: change(a, '--max_query_length', '0'), '--max_query_length 0: give 1'),
    (lambda a, t: [*a, '--n_best_size', '0'], '--n_best_size 0: give 1'),
    (lambda a, t: [*a, '--max_answer_length', '0'], '--max_answer_length 0: give 1'),
    (lambda a, t: [*a, '--test_batch_size', '0'], '--dev_batch_size 0: give 1'),
    (lambda a, t: [*a, '--gpu'], '--gpu 0'),
    (lambda a, t: [*a, '--gpu', '1'], '--gpu 1'),
    (lambda a, t: [*a, '--deploy'], '--deploy needs --only_'),
    (lambda a, t: [*a, '--sentencepiece', f'{t}/x.model'], '--sentencepiece and --vocab_file'),
    (
        lambda a, t: ['--sentencepiece', f'{t}/x.model'],
        '--sentencepiece: pretrained weights have a vocabulary of their own',
    ),
    (
        lambda a, t: ['--sentencepiece', f'{t}/x.model', '--from_scratch'],
        "--sentencepiece '.*x.model': no such file",
    ),
    (lambda a, t: ['--sentencepiece', f'{t}/v.txt'], 'ends in .model or .spiece'),
    (lambda a, t: [*a, '--cache_dir', f'{t}/text.json'], 'cannot write to directory'),
]


def swag_arguments(data, folder, edit):
    argv = named(
        edit, OUT=[folder], TEST=[data / 'test.csv'], VAL=[data / 'val.csv'],
        VOCAB=[data / 'vocab.txt'],
    )  # fmt: skip
    return [*bert(data, 'max_length=40,dropout=0'), '--output_dir', folder, *argv]


SWAG = [
    ([], 'nothing to do: give --do_train, --do_eval or both'),
    (['--do_train'], 'there is no train set: give --train_file, or --data_dir'),
    (['--do_eval'], 'there is no dev set'),
    (['--do_eval', '--data_dir', 'OUT'], "--data_dir '.*' has none of train.csv"),
    (['--do_train', '--train_file', 'none.csv'], "--train_file 'none.csv': no such file"),
    (['--do_train', '--train_file', 'TEST', '--dev_file', 'VAL'], 'has no labels: training'),
    (['--do_train', '--do_eval', '--train_file', 'VAL'], 'there is no dev set'),
    (
        ['--do_train', '--train_file', 'VAL', '--early_stop', '1', '--max_seq_length', '40'],
        '--early_stop: there is no dev',
    ),
    (['--do_eval', '--dev_file', 'VOCAB'], 'there is no sent1, sent2'),
    (['--do_eval', '--dev_file', 'VAL', '--resume'], '--resume needs --do_train'),
    (['--do_eval', '--dev_file', 'VAL', '--max_seq_length', '4'], 'a length of 4 is too small'),
    (['--do_eval', '--dev_file', 'VAL', '--max_seq_length', '41'], 'takes 40 tokens at most'),
    (
        ['--do_eval', '--train_batch_size', '1', '--accumulate', '2'],
        '--train_batch_size 1 cannot be divided into --gradient_accumulation_steps 2',
    ),
]


def tagging_arguments(data, folder, edit):
    argv = named(edit, OUT=[folder], TEST=[data / 'test.txt'], DATA=[data])
    return [*bert(data, 'max_length=64,dropout=0'), '--output_dir', folder, *argv]


TAGGING = [
    ([], 'there is no train set: give --train_file, or --data_dir'),
    (['--only_inference'], 'there is no dev set'),
    (['--data_dir', 'OUT'], "--data_dir '.*' has none of train.txt, valid.txt or dev.txt"),
    (['--dev-path', 'none.txt'], "--dev_file 'none.txt': no such file"),
    (['--data_dir', 'DATA', '--label_column', '3'], 'line 3: there is no column 3 for'),
    (
        ['--data_dir', 'DATA', '--labels', 'O', 'B-PER', '--seq-len', '9'],
        "txt, line \\d+: the label 'I-PER' is none of those known: O, B-PER",
    ),
    (['--data_dir', 'DATA', '--labels', 'O', 'O'], 'two different ones are needed'),
    (['--data_dir', 'DATA', '--seq-len', '2'], 'a length of 2 is too small'),
    (['--data_dir', 'DATA', '--seq-len', '65'], '--max_seq_length 65: the model takes 64'),
    (['--data_dir', 'DATA', '--dropout_prob', '1'], '--dropout_prob 1.0: give a number'),
    (['--data_dir', 'DATA', '--only_inference'], 'does not say its labels: give --labels'),
    (['--data_dir', 'DATA', '--only_inference', '--resume'], '--resume and --only_inference'),
    (['--cased', '--bert_dataset', 'x'], '--cased and --bert_dataset exclude each other'),
]


def gpt_arguments(data, folder, edit):
    argv = named(
        edit, OUT=[folder], TRAIN=[data / 'train.csv'], VOCAB=[data / 'vocab.json'],
        NO_LABELS=[data / 'train_unlabelled.csv'],
    )  # fmt: skip
    model = ['--from_scratch', '--vocab_file', data / 'vocab.json', '--output_dir', folder]
    return [*model, *argv]


GPT = [
    (['--output_dir', 'OUT'], 'nothing to do: give --do_train, --do_eval or both'),
    (['--do_train'], '--do_train needs --train_dataset'),
    (['--do_eval'], '--do_eval needs --eval_dataset'),
    (['--do_train', '--train_dataset', 'none.csv'], "--train_dataset 'none.csv': no such file"),
    (['--do_train', '--train_dataset', 'TRAIN'], '--n_valid 374: .* has 160 stories'),
    (['--do_train', '--train_dataset', 'TRAIN', '--n_valid', '-1'], '--n_valid -1: give'),
    (
        ['--do_train', '--do_eval', '--train_dataset', 'TRAIN', '--n_valid', '0'],
        '--do_eval: there is no dev set',
    ),
    (['--do_train', '--train_dataset', 'NO_LABELS', '--n_valid', '9'], 'has no answers'),
    (['--do_eval', '--eval_dataset', 'TRAIN', '--resume'], '--resume needs --do_train'),
    (['--do_eval', '--eval_dataset', 'TRAIN', '--lm_coef', '-1'], '--lm_coef -1.0: give'),
    (['--do_eval', '--eval_dataset', 'TRAIN', '--max_grad_norm', '0'], '--max_grad_norm 0.0'),
    (['--do_eval', '--eval_dataset', 'VOCAB'], 'no stories below the columns InputStoryid'),
    (
        ['--do_eval', '--eval_dataset', 'TRAIN', '--hparams', 'num_layers=1,max_length=4'],
        'a length of 4 is too small',
    ),
]


def lm_arguments(data, folder, edit):
    other = folder / 'folder'
    other.mkdir()
    for name in ('vocab.json', 'merges.txt'):
        (other / name).write_text((data / name).read_text())
    new = ['--from_scratch', '--train_file', data / 'train.txt']
    argv = named(edit, EVAL=[data / 'eval.txt'], FOLDER=[other], NEW=new)
    if '--eval_file' not in argv:
        argv += ['--eval_file', data / 'eval.txt']
    return [*argv, '--output_dir', folder / 'out']


LM = [
    (['--family', 'gpt2', '--eval_file', 'none.txt'], "--eval_file 'none.txt': no such file"),
    (['--eval_file', 'EVAL'], 'give --model, a name or a folder, or --family'),
    (['--eval_file', 'EVAL', '--model', 'gpt3'], "unknown folder or pretrained model 'gpt3'"),
    (['--eval_file', 'EVAL', '--model', 'bert_12_768_12'], 'is a bert: give one of gpt, gpt2'),
    (['--eval_file', 'EVAL', '--model', 'gpt2', '--family', 'gpt'], "--model 'gpt2' is a gpt2"),
    (['--eval_file', 'EVAL', '--model', 'FOLDER'], 'config.json does not tell the family'),
    (['--family', 'gpt2', '--mem_len', '4'], '--mem_len is not for gpt2: leave it out'),
    (['--family', 'transfo_xl', '--block_size', '4'], '--block_size is not for transfo_xl'),
    (['--family', 'transfo_xl', '--cutoffs', '4'], '--cutoffs needs --from_scratch'),
    (['--family', 'gpt2', '--learn_vocab', '300'], '--learn_vocab needs --from_scratch'),
    (['NEW', '--family', 'gpt', '--learn_vocab', '300'], '--learn_vocab learns GPT-2'),
    (['NEW', '--family', 'gpt2', '--learn_vocab', '9'], '9 byte pairs is too small: give 258'),
    (['NEW', '--family', 'gpt2', '--learn_vocab', '0'], '--learn_vocab 0: give 1 or more'),
    (
        ['NEW', '--family', 'gpt', '--vocab_file', 'FOLDER', '--block_size', '17',
         '--hparams', 'num_layers=1,max_length=16'],
        '--block_size 17: give 2 to 16',
    ),
    (['NEW', '--family', 'gpt', '--vocab_file', 'FOLDER', '--tgt_len', '0'], '--tgt_len 0'),
    (['--family', 'gpt2', '--resume'], '--resume continues a training'),
    (['--family', 'gpt2', '--max_grad_norm', '-1'], '--max_grad_norm -1.0: give'),
    (
        ['NEW', '--family', 'transfo_xl', '--cutoffs', '6', '3', '--hparams',
         SIZES['transfo_xl']],
        'cutoffs must be ascending',
    ),
    (
        ['NEW', '--family', 'transfo_xl', '--batch_size', '5000', '--hparams',
         SIZES['transfo_xl']],
        'is too short for a batch_size of 5000',
    ),
]  # fmt: skip


def sentences_arguments(data, folder, edit):
    return [*sentences(data, folder / 'out'), *edit]


SENTENCES = [
    (['--loss', 'in_batch'], '--loss in_batch learns from pairs or triplets.*has scored'),
    (['--max_score', '0'], '--max_score 0.0: give'),
    (['--max_score', '2'], 'the scores are from 0 to 5.*--max_score, which is 2'),
    (['--text_columns', 'sentence1'], "--text_columns 'sentence1': give two or three"),
    (['--score_column', 'grade'], "train.tsv, line 2: there is no column 'grade'"),
    (['--max_len', '2'], 'a length of 2 is too small'),
    (['--max_len', '17'], '--max_len 17: the model takes 16'),
    (['--resume', '--only_inference'], '--resume'),
    (['--engine', 'onnxruntime'], '--engine onnxruntime'),
    (['--dev_file', 'none.tsv'], "--dev_file 'none.tsv': no such file"),
]

TRAINING = {
    script: BadInput(script, arguments, rows, toy)
    for script, arguments, rows, toy in (
        ('finetune_classifier', classifier_arguments, CLASSIFIER, 'finetune_classifier'),
        ('finetune_squad', squad_arguments, SQUAD, 'finetune_squad'),
        ('finetune_swag', swag_arguments, SWAG, 'finetune_swag'),
        ('finetune_embedding', sentences_arguments, SENTENCES, 'finetune_embedding'),
        ('finetune_tagging', tagging_arguments, TAGGING, 'finetune_tagging'),
        ('finetune_gpt', gpt_arguments, GPT, 'finetune_gpt'),
        ('train_lm', lm_arguments, LM, 'train_lm gpt'),
    )
}
