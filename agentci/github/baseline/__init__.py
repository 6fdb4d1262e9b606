"""Results of earlier runs: find, read, save and compare them."""
