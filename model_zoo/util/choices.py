"""Names that settings, parsers and the functions behind them share; loads nothing else."""

__all__ = [
    'BACKENDS',
    'CALIBRATION_MODES',
    'ENGINES',
    'GLUONNLP',
    'ORIGINALS',
    'POOLINGS',
    'QUANTIZED_DTYPES',
    'SCHEDULE_NAMES',
]

#: values of `comm_backend`
BACKENDS = ('device', 'horovod')
#: how INT8 finds the ranges of activations: at each call; the smallest and largest ones seen; those
#: with the least divergence; the smallest and largest ones, with outliers clipped
CALIBRATION_MODES = ('none', 'naive', 'entropy', 'customize')
#: what runs a model; 'auto' is the fastest that is installed and can do it
ENGINES = ('mxnet', 'onnxruntime', 'openvino', 'auto')
#: the order of a classifier's outputs: GluonNLP's
GLUONNLP = 'gluonnlp'
#: the order of pytorch-pretrained-BERT and Google
ORIGINALS = 'originals'
#: the ways of `pool` that users choose from; other models of sentence-transformers have more
POOLINGS = ('mean', 'cls', 'max')
#: types of INT8's activations; 'auto' chooses by their ranges
QUANTIZED_DTYPES = ('auto', 'int8', 'uint8')
#: schedules of the learning rate
SCHEDULE_NAMES = (
    'none',
    'warmup_constant',
    'warmup_linear',
    'warmup_cosine',
    'warmup_cosine_hard_restarts',
    'warmup_cosine_warmup_restarts',
)
