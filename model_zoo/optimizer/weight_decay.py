"""Which parameters are decayed."""

import re

__all__ = ['NO_DECAY', 'disable_weight_decay']

#: Regular expression of the parameters that aren't decayed. The end of the name decides: a block's
#: prefix may contain one of these words.
NO_DECAY = r'.*(bias|beta|gamma)$'


def disable_weight_decay(block, pattern=NO_DECAY):
    """Set `wd_mult` to 0 for biases and for the scales and shifts of layer normalization.

    Parameters
    ----------
    block : mxnet.gluon.Block or mxnet.gluon.ParameterDict
    pattern : str
        Regular expression for the names of the parameters that don't decay.

    Returns
    -------
    list of str
        Their names.
    """
    parameters = block.collect_params() if hasattr(block, 'collect_params') else block
    names = [name for name in parameters if re.match(pattern, name)]
    for name in names:
        parameters[name].wd_mult = 0.0
    return names
