"""Request time, dialect-neutral: picks a target, sends, relays."""
