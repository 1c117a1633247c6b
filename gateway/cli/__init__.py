"""The commands of `gateway`: what each prints and how it ends."""
