"""Services of OpenAI's Evals API: what they are sent, and what they answer."""
