#!lua flags=allow-oom
-- KEYS: marks, entry. ARGV: the version of the marks that is known.

local version, marks = news(KEYS[1], ARGV[1])
return { version, marks, entry(KEYS[2]) }
