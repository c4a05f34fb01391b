"""Of scripts that train one of the `contract`'s toys."""

from contract import SIZES, bert, classifier, sentences, squad

from .case import BadInput, named, values

__all__ = ['TRAINING']


def classifier_arguments(data, folder, edit):
    (folder / 'file').write_text('')
    toy = classifier(data, folder / 'out')
    loaded = [word for word in toy if word != '--from_scratch']
    return named(edit, TOY=toy, LOADED=loaded, NOWHERE=[folder / 'no' / 'folder'])


CLASSIFIER = [
    *values('--dev_split 0.1', '--lr -1', '--max_length 41', '--deploy', '--train_file no.tsv'),
    (['--task_name', 'NoTask'], "unknown task 'NoTask'; known: .*MRPC.*custom"),
    (['--task_name', 'MRPC', '--data_dir', 'no'], "no train set.*'no'"),
    (['--task_name', 'STS-B', '--class_weights', 'balanced'], '--class_weights.*STS-B'),
    (['--task_name', 'MRPC', '--data_dir', '.', '--only_inference'], 'no dev set of MRPC'),
    (['TOY', '--model', 'bert_1'], "pretrained model 'bert_1'; did you mean "),
    (['TOY', '--deploy', '--only_inference', '--model_prefix', 'x'], 'x-(symbol.json|0000.params)'),
    (['LOADED', '--model_parameters', 'none.params'], '--model_parameters'),
    (['TOY', '--model', 'NOWHERE'], 'no/folder.: no such folder'),
    (['TOY', '--output_dir', 'file'], "cannot write to directory '.*file'"),
]


def squad_arguments(data, folder, edit):
    (folder / 'dev-2.json').write_text((data / 'dev-2.json').read_text())
    return named(edit, TOY=squad(data, folder / 'out'))


SQUAD = [
    *values('--train_file no.json', '--max_length 49'),
    (['TOY', '--train_file', 'dev-2.json'], 'use --version_2'),
]


def swag_arguments(data, folder, edit):
    argv = named(edit, VAL=[data / 'val.csv'])
    return [*bert(data, 'max_length=40,dropout=0'), '--output_dir', folder, *argv]


SWAG = [
    ([], 'there is no train set'),
    (['--do_eval', '--dev_file', 'VAL', '--max_length', '41'], 'takes 40 tokens at most'),
]


def tagging_arguments(data, folder, edit):
    argv = named(edit, DATA=[data])
    return [*bert(data, 'max_length=64,dropout=0'), '--output_dir', folder, *argv]


TAGGING = [
    ([], 'there is no train set: give --train_file, or --data_dir'),
    (['--dev-path', 'none.txt'], '--dev-path'),
    (['--data_dir', 'DATA', '--only_inference'], 'has no names of labels: use --labels'),
]


def gpt_arguments(data, folder, edit):
    argv = named(edit, TRAIN=[data / 'train.csv'])
    model = ['--from_scratch', '--vocab_file', data / 'vocab.json', '--output_dir', folder]
    return [*model, *argv]


GPT = [
    ([], 'there is no train set'),
    (['--do_train', '--train_file', 'TRAIN'], '--n_valid'),
]


def lm_arguments(data, folder, edit):
    new = ['--from_scratch', '--train_file', data / 'train.txt']
    xl = [*new, '--family', 'transfo_xl', '--hparams', SIZES['transfo_xl']]
    argv = named(edit, EVAL=[data / 'eval.txt'], NEW=new, XL=xl)
    if '--dev_file' not in argv:
        argv += ['--dev_file', data / 'eval.txt']
    return [*argv, '--output_dir', folder / 'out']


LM = [
    (['--dev_file', 'EVAL'], 'give --model, a name or a folder, or --family'),
    (['--dev_file', 'EVAL', '--model', 'bert_12_768_12'], 'is unknown; known: gpt'),
    (['--family', 'gpt2', '--mem_len', '4'], '--mem_len'),
    (['NEW', '--family', 'gpt', '--learn_vocab', '300'], '--learn_vocab'),
    (['XL', '--batch_size', '900'], 'is too short for a batch_size of 900'),
]


def sentences_arguments(data, folder, edit):
    return [*sentences(data, folder / 'out'), *edit]


SENTENCES = [
    (['--loss', 'in_batch'], '--loss'),
    (['--max_score', '2'], 'the scores are from 0 to 5'),
    (['--engine', 'onnxruntime'], '--engine'),
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
