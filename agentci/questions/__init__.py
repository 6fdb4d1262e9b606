"""What language models are asked, and in which form they are to answer."""
