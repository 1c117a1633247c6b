"""Where and how to call providers: one row each, no network here."""
