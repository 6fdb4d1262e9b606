"""A server through which programs ask language models while they run."""
