"""Reports that other runs wrote: read as foreign data, and made into one."""
