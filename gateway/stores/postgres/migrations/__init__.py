"""The tables, step by step. Forward only: a step is never changed once it was released, only followed."""
