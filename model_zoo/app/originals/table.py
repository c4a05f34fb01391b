"""The originals' flags, command by command."""

from .. import cli
from . import conversions
from .original import Original

__all__ = ['TABLE']

_PYTORCH = {
    'num_train_epochs': 'epochs',
    'eval_batch_size': 'dev_batch_size',
    'learning_rate': 'lr',
    'warmup_proportion': 'warmup_ratio',
}
_DEBUGGER = {
    'server_ip': Original('there is no remote debugger', type=str),
    'server_port': Original('there is no remote debugger', type=str),
}
_PROCESS = {
    'local_rank': Original(
        '-1 only: horovodrun starts processes here', type=int, convert=conversions.check_one_process
    ),
}
_CPU = Original('the CPU, as is the default', convert=conversions.check_gpu_unwanted)
_OVERWRITE = Original('a folder with results of another run is not refused')
_PYTORCH_BERT = {
    **_PYTORCH,
    **_PROCESS,
    'gradient_accumulation_steps': 'accumulate',
    'fp16': Original('--dtype float16', 'dtype', 'float16'),
    'train_batch_size': Original(
        'examples of an update: --batch_size times --gradient_accumulation_steps',
        type=int,
        convert=conversions.divide_train_batch_size,
    ),
}
_NO_TPU = 'there is no TPU: the CPU is used, or the GPU that is asked for'
_TPU = {
    'use_tpu': Original(_NO_TPU, type=cli.boolean),
    **{
        name: Original(_NO_TPU, type=str)
        for name in ('tpu_name', 'tpu_zone', 'gcp_project', 'master', 'num_tpu_cores')
    },
}
_ESTIMATOR = {
    **_TPU,
    'iterations_per_loop': Original('it is of the TPU estimator', type=int),
}
# of the classifier and of SQuAD: pytorch-pretrained-bert's and Google's
_FINETUNING = {
    **_PYTORCH_BERT,
    **_DEBUGGER,
    **_ESTIMATOR,
    'num_train_epochs': Original(
        '--epochs, or a fraction', type=float, convert=conversions.count_epochs
    ),
    'predict_batch_size': 'dev_batch_size',
    'no_cuda': _CPU,
    'loss_scaling': 'loss_scale',
    'save_checkpoints_steps': 'ckpt_interval',
    'do_lower': 'do_lower_case',
    'do_train': Original(
        'train; where it is left out but another such flag is given, or as --do_train=false: not',
        type=cli.boolean,
        convert=conversions.choose_run,
    ),
    'as_estimator': Original(
        'go on with the training in --output_dir, if there is one; or evaluate its best model',
        convert=conversions.go_on_with_output,
    ),
}
_READING = Original('data is read in another way than in GluonNLP', type=str)

#: command -> flag of an original -> ours, both without dashes; or an `Original`
TABLE = {
    'bertology': {
        'model_name_or_path': 'model',
        'bert_model': 'model',
        **_PROCESS,
        **_DEBUGGER,
        'no_cuda': _CPU,
        'overwrite_output_dir': _OVERWRITE,
    },
    'create_pretraining_data': {
        'train_corpus': 'input_file',
        'bert_model': 'vocab',
        'epochs_to_generate': 'dupe_factor',
        'max_seq_len': 'max_seq_length',
        'do_whole_word_mask': Original(
            '--whole_word_mask', 'whole_word_mask', type=cli.boolean
        ),
        'reduce_memory': Original('the text is read in parts anyhow: see --part_mb'),
    },
    'eval_transfo_xl': _DEBUGGER,
    'extract_features': {
        **_PROCESS,
        **_TPU,
        'no_cuda': _CPU,
        'use_one_hot_embeddings': Original('it is for TPUs', type=cli.boolean),
    },
    'finetune_classifier': {
        **_FINETUNING,
        'max_seq_length': 'max_len',
        'cache_dir': Original('what is downloaded is kept in $MXNET_HOME/models', type=str),
        'pad': Original('pad batches to --max_len', convert=conversions.pad_to_max_len),
    },
    'finetune_gpt': {
        **_PYTORCH,
        **_DEBUGGER,
        'model_name': 'gpt_model',
        'train_batch_size': 'batch_size',
        'weight_decay': 'wd',
    },
    'finetune_lm': {
        **_PYTORCH_BERT,
        'train_file': 'train_corpus',
        'weight_decay': 'wd',
        'max_seq_len': 'max_seq_length',
        'do_whole_word_mask': 'whole_word_mask',
        'do_train': Original('it trains in any case'),
        'no_cuda': _CPU,
        'on_memory': Original('the text is read in parts'),
    },
    'finetune_squad': {
        **_FINETUNING,
        'test_batch_size': 'dev_batch_size',
        'only_predict': 'only_inference',
        'do_predict': Original(
            'write predictions, as is done in any case; alone: --only_inference',
            type=cli.boolean,
            with_flag='do_train',
        ),
        'version_2_with_negative': Original('--version_2', 'version_2', type=cli.boolean),
        'verbose_logging': Original('there are no more messages', type=cli.boolean),
    },
    'finetune_swag': {**_PYTORCH_BERT, 'no_cuda': _CPU},
    'finetune_tagging': {
        **_PYTORCH,
        'train_batch_size': 'batch_size',
        # GluonNLP 0.8's
        'train-path': 'train_file',
        'dev-path': 'dev_file',
        'test-path': 'test_file',
        'seq-len': 'max_seq_length',
        'dropout-prob': 'dropout_prob',
        'bert-model': 'bert_model',
        'num-epochs': 'epochs',
        'batch-size': 'batch_size',
        'learning-rate': 'lr',
        'warmup-ratio': 'warmup_ratio',
        'save-checkpoint-prefix': 'output_dir',
    },
    'run_pretraining': {
        'dataset_name': 'dataset',
        'num_data_workers': 'num_dataset_workers',
        'num_batch_workers': _READING,
        'repeat': _READING,
        'num_max_dataset_cached': _READING,
        'kvstore': _READING,
        'dataset_cached': Original(_READING.help),
        # Google's
        **_ESTIMATOR,
        'output_dir': 'ckpt_dir',
        'train_batch_size': 'batch_size',
        'eval_batch_size': 'batch_size_eval',
        'learning_rate': 'lr',
        'num_train_steps': 'num_steps',
        'save_checkpoints_steps': 'ckpt_interval',
        'num_warmup_steps': Original(
            '--warmup_ratio in updates', type=int, convert=conversions.read_warmup_steps
        ),
        'input_file': Original(
            '--data, --data_eval or both', type=str, convert=conversions.name_samples
        ),
        'do_train': Original('train on them', type=cli.boolean, with_flag='input_file'),
        'do_eval': Original('evaluate on them', type=cli.boolean, with_flag='input_file'),
        'as_estimator': Original(
            'go on with the training in --ckpt_dir, if there is one; or evaluate its model',
            convert=conversions.go_on_with_pretraining,
        ),
    },
    'train_lm': {'model_name': 'model'},
}
