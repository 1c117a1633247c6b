"""Values and rules of the gateway: no I/O, standard library only (`codec` excepted)."""
