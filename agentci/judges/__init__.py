"""Ask language models: providers, prompts, retries, budget."""
