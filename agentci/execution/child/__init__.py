"""What runs in processes of its own, next to or inside the sandbox; standard library only."""
