"""The live page: a read-only local server that shows the studies of a store and updates them as runs arrive."""
