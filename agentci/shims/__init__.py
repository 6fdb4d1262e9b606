"""What runs in processes of its own beside us: the standard library, and nothing else of ours."""
