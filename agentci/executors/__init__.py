"""Where and under which limits a program runs."""
