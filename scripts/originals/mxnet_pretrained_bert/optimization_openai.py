"""GPT's optimizer, by the name of ``optimization_openai.py``."""

from .optimization import OpenAIAdam

__all__ = ['OpenAIAdam']
