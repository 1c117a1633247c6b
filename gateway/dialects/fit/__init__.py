"""Brings any neutral request into the form that a target's grammar asks for, without loss or with a 400 (K33)."""
