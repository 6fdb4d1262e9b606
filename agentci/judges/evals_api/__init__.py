"""Services that implement OpenAI's Evals API: requests and responses."""
