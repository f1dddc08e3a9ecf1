"""`python -m tools.fuzz.show READER SEED NUMBER`: the bytes of one input, on standard output."""

import sys

from tools.fuzz.cases import content
from tools.fuzz.readers import named

if __name__ == "__main__":
    word, seed, number = sys.argv[1:4]
    sys.stdout.buffer.write(content(named([word])[0], int(seed), int(number)))
