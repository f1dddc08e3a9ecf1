"""Following a serving engine: what its traffic accepts, and when other settings would be faster."""
