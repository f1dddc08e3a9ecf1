"""Expected failures of the kernels package; each message gives the rule, the values, a next step.

KernelError
+-- UnsupportedShape   no legal tile, head dim, page size or arch
+-- BadTensor          dtype, shape, layout or device of an argument
+-- BuildMismatch      a build folder is damaged, or made for another arch or version
+-- CompilerFailure    the compiler or one of its tools failed
"""


class KernelError(Exception):
    """Root of the expected failures."""


class UnsupportedShape(KernelError, ValueError):
    """What was asked lies outside what the kernel can do."""


class BadTensor(KernelError, ValueError):
    """A tensor that the kernel would read wrongly."""


class BuildMismatch(KernelError):
    """A build that must not be launched here."""


class CompilerFailure(KernelError):
    """The compiler, or a tool that comes with it, failed."""
