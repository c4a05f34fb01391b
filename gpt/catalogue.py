"""OpenAI GPT's size and pretrained weights, as data; see Radford et al. 2018, section 4.1."""

from model_zoo.pretrained import PretrainedEntry

#: name of a model -> its fields of OpenAIGPTConfig; the name says layers, units and heads
ARCHITECTURES = {'gpt_12_768_12': {'n_layer': 12, 'n_embd': 768, 'n_head': 12}}

#: the entries of the catalogue, which ``zoo.py`` registers
PRETRAINED = (
    PretrainedEntry(
        'gpt_12_768_12',
        'book_corpus',
        family='gpt',
        do_lower_case=True,
        default=True,
        names=('openai-gpt',),
        hub='openai-community/openai-gpt',
    ),
)
