"""The paper's experiments: which runs there are, doing them, and what they say about the paper's claims."""
