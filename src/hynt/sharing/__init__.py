"""Giving runs away and taking them: folders laid out as Hugging Face repositories, and the repositories themselves."""
