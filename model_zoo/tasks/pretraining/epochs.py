"""A training whose epochs each have a file of samples."""

from .pregenerated import epoch_of
from .sources import Source

__all__ = ['EpochFiles']


class EpochFiles(Source):
    """pytorch-pretrained-bert's files: epoch N of a training takes the samples of file N.

    Where there are fewer files than epochs, they are taken again from the first one on.

    Parameters
    ----------
    files : ShardFiles
        Whose names are ``epoch_N.json``.
    """

    num_parts = 1

    def __init__(self, files):
        self._files = files
        self.vocab, self.max_len = files.vocab, files.max_len
        self.shortest, self.longest = files.shortest, files.longest
        self.mixes_all = files.mixes_all
        self._order = sorted(range(files.num_parts), key=lambda n: epoch_of(files.paths[n]))

    def _file(self, epoch):
        return self._order[epoch % len(self._order)]

    def part(self, number, epoch, seed):
        return self._files.part(self._file(epoch), epoch, seed)

    def histogram_of(self, epoch):
        return self._files.histograms[self._file(epoch)]

    def join(self, samples):
        return self._files.join(samples)

    def close(self):
        self._files.close()
