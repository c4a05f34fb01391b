"""Transformer-XL's sizes and pretrained weights, as data; see Dai et al. 2019, section 4.1."""

from model_zoo.pretrained import PretrainedEntry

#: name of a model -> its fields of TransfoXLConfig; the name says layers, units and heads
_SIZES = {'n_layer': 18, 'd_model': 1024, 'n_head': 16, 'd_head': 64, 'd_inner': 4096}
ARCHITECTURES = {'transfo_xl_18_1024_16': _SIZES}

#: the entries of the catalogue, which ``zoo.py`` registers
PRETRAINED = (
    PretrainedEntry(
        'transfo_xl_18_1024_16',
        'wikitext-103',
        family='transfo_xl',
        do_lower_case=False,
        default=True,
        names=('transfo-xl-wt103',),
        hub='transfo-xl/transfo-xl-wt103',
    ),
)
