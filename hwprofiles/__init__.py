"""Hardware facts as data: GPU, host and link profiles, each number with unit and source."""
