"""From files and environment to one checked, frozen tree. Knows no middleware and no provider."""
