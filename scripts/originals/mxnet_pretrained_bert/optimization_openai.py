"""GPT's optimizer, by the name of ``optimization_openai.py``."""

from model_zoo.optimizer.torch_like import OpenAIAdam

__all__ = ['OpenAIAdam']
