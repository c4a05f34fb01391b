"""Names that settings, parsers and the functions behind them share; loads nothing else."""

#: values of `comm_backend`
BACKENDS = ('device', 'horovod')
#: how INT8 finds the ranges of activations: at each call; the smallest and largest ones seen; those
#: with the least divergence; the smallest and largest ones, with outliers clipped
CALIBRATION_MODES = ('none', 'naive', 'entropy', 'customize')
#: what runs a model; 'auto' is the fastest that is installed and can do it
ENGINES = ('mxnet', 'onnxruntime', 'openvino', 'auto')
#: what records of results are written as
FORMATS = ('table', 'jsonl', 'json', 'csv', 'tsv')
#: the order of a classifier's outputs: GluonNLP's
GLUONNLP = 'gluonnlp'
#: what is done with texts that are too long for a model
LONG_TEXTS = ('cut', 'windows')
#: how `BertEmbedding` makes one vector of a word's pieces
OOV_WAYS = ('avg', 'sum', 'last')
#: libraries that write and run ONNX files; ONNX Runtime's optimizer imports sympy
ONNX_LIBRARIES = ('onnx', 'onnxruntime', 'sympy')
#: precisions of an ONNX file
ONNX_PRECISIONS = ('float32', 'float16', 'int8')
#: the order of pytorch-pretrained-BERT and Google
ORIGINALS = 'originals'
#: the ways of `pool` that users choose from; other models of sentence-transformers have more
POOLINGS = ('mean', 'cls', 'max')
#: the precisions that a block can be cast to
PRECISIONS = ('float32', 'float16', 'bfloat16')
#: types of INT8's activations; 'auto' chooses by their ranges
QUANTIZED_DTYPES = ('auto', 'int8', 'uint8')
#: schedules of the learning rate
_WARMUPS = ('constant', 'linear', 'cosine', 'cosine_hard_restarts', 'cosine_warmup_restarts')
SCHEDULE_NAMES = ('none', *(f'warmup_{name}' for name in _WARMUPS))
#: the ways to combine the tokens' labels into entities
STRATEGIES = ('none', 'simple', 'first', 'average', 'max')
#: formats of the files of weights in a folder
WEIGHTS_FORMATS = ('native', 'huggingface', 'pytorch', 'numpy', 'tensorflow')
