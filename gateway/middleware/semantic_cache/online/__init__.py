"""What a cache learns of its own answers: when a similar question may be answered, proven for each pool."""
