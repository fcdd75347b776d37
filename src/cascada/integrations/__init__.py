"""Integrations with other libraries. Each needs an extra, and is imported only when it is used."""
