"""String similarity measures, from 0 to 1."""
