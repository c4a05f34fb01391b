"""Train or fine-tune a language model, OpenAI GPT, GPT-2 or Transformer-XL, on a text.

    python train_lm.py --model gpt2 --train_file train.txt --dev_file valid.txt
    python train_lm.py --family gpt2 --from_scratch --learn_vocab 8000 --train_file ... \\
        --hparams num_layers=4,units=256,num_heads=4,max_length=256
    python train_lm.py --family transfo_xl --from_scratch --train_file ... --tgt_len 64 --mem_len 64

OpenAI GPT and GPT-2 read blocks of the text in random order. Transformer-XL reads it in order, in
``--batch_size`` streams with a memory. Perplexity is measured after each epoch; without
``--train_file`` the script only measures it. ``--output_dir`` receives the log, ``results.json``,
``curves.png``, the parameters after the last epochs and the best one, checkpoints for ``--resume``,
and ``best_model/`` for ``from_pretrained``, generate_gpt2.py and eval_transfo_xl.py.
"""

from model_zoo.app.originals import training_main
from model_zoo.errors import InputError
from model_zoo.tasks.settings import LanguageModelSettings
from model_zoo.training.settings import setting

#: family -> its default model
FAMILIES = {'gpt': 'gpt_12_768_12', 'gpt2': 'gpt2_12_768_12', 'transfo_xl': 'transfo_xl_18_1024_16'}


class CommandSettings(LanguageModelSettings):
    """A model may be named by its family alone."""

    title = 'text'

    family: str | None = setting(None, "default: `model`'s", 'usual', choices=list(FAMILIES))

    def derived(self):
        family = find_family(self)
        model = self.model or FAMILIES[family]
        return {**super().derived(), 'family': family, 'model': model}

    def check(self):
        super().check()
        if self.learn_vocab and self.family == 'gpt':
            raise InputError(
                "learns GPT-2's byte pairs, or Transformer-XL's words; for gpt give `vocab_file`",
                field='learn_vocab',
            )


def find_family(args):
    if args.model is None:
        if args.family is None:
            raise InputError('give `model`, a name or a folder, or `family`')
        return args.family
    from model_zoo.app.model_choice import family_of

    family = family_of(args.model, args.dataset)
    if family is None and args.family is None:
        problem = f'{args.model!r}: its config.json does not say the family; give `family`'
        raise InputError(problem, field='model')
    if None not in (family, args.family) and family != args.family:
        problem = f'{args.model!r} is a {family}, not a {args.family} as `family` says'
        raise InputError(problem, field='model')
    return family or args.family


main = training_main(
    __name__, CommandSettings, 'language_model.LanguageModelTask', __doc__, 'train_lm'
)
