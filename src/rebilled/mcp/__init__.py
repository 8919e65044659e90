"""Asking MCP servers what they list, and whether a prompt cache can live with it."""
