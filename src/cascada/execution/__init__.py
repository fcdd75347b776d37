"""Workers that run trials: in the calling thread, a pool of processes, or any executor."""
