"""The software that checkpoints come from."""

from ...errors import InputError
from .ours import is_variant

__all__ = ['SOFTWARE', 'check_software', 'run_theirs']

#: software -> the families whose models it has
SOFTWARE = {
    'tensorflow': ('bert', 'gpt2', 'transfo_xl'),
    'transformers': ('bert', 'roberta', 'xlmr', 'distilbert', 'electra', 'gpt', 'gpt2'),
    'pytorch-pretrained-bert': ('bert', 'gpt', 'gpt2'),
}


def check_software(software, family, code=None):
    """Raise InputError if `run_theirs` can't run with these arguments."""
    if family not in SOFTWARE[software]:
        able = [name for name, families in SOFTWARE.items() if family in families]
        raise InputError(f'{software} does not run {family} here: {", ".join(able)} does')
    if software == 'tensorflow' and not code:
        raise InputError(
            "`software` tensorflow needs `code`, the folder of the original's program"
        )


def run_theirs(software, family, checkpoint, block, inputs, code=None):
    """The outputs of the software that a checkpoint comes from.

    Parameters
    ----------
    software : str
        One of `SOFTWARE`.
    family : str
        One that the software has.
    checkpoint : str
        Folder of the checkpoint; the software reads it.
    block : ZooBlock
        Ours, for the configuration and the heads that the checkpoint has.
    inputs : Inputs
    code : str, optional
        Needed for ``'tensorflow'``: folder of a clone of google-research/bert, openai/gpt-2 or
        kimiyoung/transformer-xl.

    Returns
    -------
    dict of str to numpy.ndarray
        As that of `run_ours`.

    Raises
    ------
    InputError
        If the software can't read the checkpoint, or `code` isn't such a clone.
    MissingExtraError
        If the software isn't installed.
    """
    check_software(software, family, code)
    if software == 'tensorflow':
        from .tensorflow_originals import run_tensorflow

        return run_tensorflow(family, checkpoint, code, block.config, inputs)
    from .pytorch_originals import run_pytorch, run_variant

    if is_variant(block):
        return run_variant(checkpoint, block, inputs)

    has_span = hasattr(block, 'span_classifier')
    return run_pytorch(software, family, checkpoint, block.config, inputs, has_span)
