"""The live page: a server on this machine that shows the studies of a store as they go on, and changes nothing."""
