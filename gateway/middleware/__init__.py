"""The kinds of layers a chain is made of, one file each."""
