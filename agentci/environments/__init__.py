"""Virtual environments for evaluators that want packages installed."""
