"""Run `run_pretraining.py` with Horovod, in the processes that ``horovodrun`` starts.

    horovodrun -np 2 -H localhost:2 python run_pretraining_hvd.py --batch_size 16 --lr 2e-5 \\
        --train_file 'out/*.npz' --training_steps 20 --dev_file 'out/*.npz' --output_dir ckpt

The flags are the same; ``--batch_size`` is for each process.
"""

from run_pretraining import PARTS

from model_zoo.app.originals import training_main
from model_zoo.tasks.settings import PretrainingSettings


class HorovodSettings(PretrainingSettings, comm_backend='horovod'):
    """The same flags."""


main = training_main(__name__, HorovodSettings, *PARTS)
