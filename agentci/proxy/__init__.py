"""What programs ask language models through: a server of their own, for as long as they run."""
