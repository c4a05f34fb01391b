"""The common part of the zoo functions of OpenAI's decoders."""

__all__ = ['HPARAMS']

#: GluonNLP's names of hyper-parameters -> fields of DecoderConfig
HPARAMS = {
    'num_layers': ('n_layer',),
    'units': ('n_embd',),
    'embed_size': ('n_embd',),
    'num_heads': ('n_head',),
    'max_length': ('n_positions', 'n_ctx'),
    'layer_norm_eps': ('layer_norm_epsilon',),
    'dropout': ('resid_pdrop', 'embd_pdrop', 'attn_pdrop'),
}
