"""Of scripts that train one of the `contract`'s toys."""

from contract import SIZES, bert, classifier, sentences, squad

from .case import named, with_rows

__all__ = ['TRAINING']


def classifier_arguments(data, folder, edit):
    (folder / 'file').write_text('')
    toy = classifier(data, folder / 'out')
    loaded = [word for word in toy if word != '--from_scratch']
    return named(edit, TOY=toy, LOADED=loaded, NOWHERE=[folder / 'no' / 'folder'])


def squad_arguments(data, folder, edit):
    (folder / 'dev-2.json').write_text((data / 'dev-2.json').read_text())
    return named(edit, TOY=squad(data, folder / 'out'))


def bert_arguments(data, folder, edit):
    argv = named(edit, VAL=[data / 'val.csv'], DATA=[data])
    return [*bert(data, 'max_length=64,dropout=0'), '--output_dir', folder, *argv]


def gpt_arguments(data, folder, edit):
    argv = named(edit, TRAIN=[data / 'train.csv'])
    model = ['--from_scratch', '--vocab_file', data / 'vocab.json', '--output_dir', folder]
    return [*model, *argv]


def lm_arguments(data, folder, edit):
    new = ['--from_scratch', '--train_file', data / 'train.txt']
    xl = [*new, '--family', 'transfo_xl', '--hparams', SIZES['transfo_xl']]
    argv = named(edit, EVAL=[data / 'eval.txt'], NEW=new, XL=xl)
    if '--dev_file' not in argv:
        argv += ['--dev_file', data / 'eval.txt']
    return [*argv, '--output_dir', folder / 'out']


def sentences_arguments(data, folder, edit):
    return [*sentences(data, folder / 'out'), *edit]


TRAINING = dict(
    with_rows(script, arguments, toy={'train_lm': 'train_lm gpt'}.get(script, script))
    for script, arguments in (
        ('finetune_classifier', classifier_arguments),
        ('finetune_squad', squad_arguments),
        ('finetune_swag', bert_arguments),
        ('finetune_embedding', sentences_arguments),
        ('finetune_tagging', bert_arguments),
        ('finetune_gpt', gpt_arguments),
        ('train_lm', lm_arguments),
    )
)
