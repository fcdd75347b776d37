"""Workers that run trials: in the calling thread, in a pool of processes, or in any executor."""
