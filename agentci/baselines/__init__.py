"""Earlier reports: where they are found, and runs beside them."""
