"""What the zoo functions of OpenAI's decoders share."""

from ...builder import Builder

__all__ = ['decoder_builder']

# GluonNLP's names of hyper-parameters -> fields of DecoderConfig
_HPARAMS = {
    'num_layers': ('n_layer',),
    'units': ('n_embd',),
    'embed_size': ('n_embd',),
    'num_heads': ('n_head',),
    'max_length': ('n_positions', 'n_ctx'),
    'layer_norm_eps': ('layer_norm_epsilon',),
    'dropout': ('resid_pdrop', 'embd_pdrop', 'attn_pdrop'),
}
_OPTIONS = (
    'output_attention',
    'output_all_encodings',
    'keep_multihead_output',
    'predict_special_tokens',
)


def decoder_builder(block_class, **hparams):
    """A `Builder` of language models.

    Parameters
    ----------
    block_class : type
        A `DecoderLM`.
    **hparams
        The family's further hyper-parameters: GluonNLP's name -> tuple of fields of its
        configuration.

    Returns
    -------
    Builder
    """

    def make(config, found, lacks, output_attention=False, **options):
        return block_class(config, output_attentions=output_attention, **options), ()

    return Builder(block_class, {**_HPARAMS, **hparams}, make, _OPTIONS)
