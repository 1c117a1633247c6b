"""Answers kept for equal and for similar questions."""
