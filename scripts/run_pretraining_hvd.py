"""`run_pretraining.py` with Horovod: the processes that ``horovodrun`` starts train together.

    horovodrun -np 2 -H localhost:2 python run_pretraining_hvd.py --batch_size 16 --lr 2e-5 \\
        --data 'out/*.npz' --num_steps 20 --data_eval 'out/*.npz' --ckpt_dir ckpt

The flags are the same; ``--batch_size`` is for each process.
"""

import sys

import run_pretraining

from model_zoo.app import cli


def main(argv=None):
    words = sys.argv[1:] if argv is None else argv
    return run_pretraining.main(['--comm_backend=horovod', *words])


if __name__ == '__main__':
    sys.exit(cli.run(main))
