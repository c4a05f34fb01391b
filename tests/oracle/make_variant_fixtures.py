"""Write tests/fixtures/variants.npz: scores of transformers' small models like BERT.

For each family its configuration, its random parameters, and the scores of masked words for a
batch of texts of 40 and 23 tokens, and for their first 7. Needs torch and transformers.
"""

import json

import numpy as np
import torch
import transformers
from oracle_files import FIXTURES, read_json

#: prefix of classes' names -> fields of the configuration
FAMILIES = read_json('cases/oracle.json')['FAMILIES']


def main():
    arrays = {'words': np.random.RandomState(0).randint(2, 20, (2, 40))}
    arrays['lengths'] = np.array([40, 23])
    mask = np.arange(40) < arrays['lengths'][:, None]
    words = torch.tensor(np.where(mask, arrays['words'], 1))
    for family, fields in FAMILIES.items():
        torch.manual_seed(0)
        config = getattr(transformers, f'{family}Config')(**fields)
        model = getattr(transformers, f'{family}ForMaskedLM')(config).eval()
        for name, parameter in model.named_parameters():
            torch.nn.init.normal_(parameter, float('orm' in name and 'bias' not in name), 0.4)
        for name, value in model.state_dict().items():
            arrays[f'{family}:{name}'] = value.numpy()
        arrays[f'{family} config'] = json.dumps(config.to_dict())
        with torch.no_grad():
            arrays[f'{family} 40'] = model(words, torch.tensor(mask).long()).logits.numpy()
            arrays[f'{family} 7'] = model(words[:, :7]).logits.numpy()
    np.savez_compressed(FIXTURES / 'variants.npz', **arrays)


if __name__ == '__main__':
    main()
