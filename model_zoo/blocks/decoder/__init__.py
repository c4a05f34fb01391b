"""What GPT and GPT-2 share: model, heads, steps of generation, name maps."""
