"""Without torch and triton only the plain-number modules are tested; `make test-kernels` has both.

Without a GPU the kernels run in Triton's interpreter, which must be chosen before they are
imported.
"""

import os
from importlib.util import find_spec

NEED_TORCH = [
    "test_aot.py",
    "test_build.py",
    "test_fp8.py",
    "test_latent.py",
    "test_masks.py",
    "test_measured.py",
    "test_on_gpu.py",
    "test_probes.py",
    "test_tensors.py",
    "test_tree.py",
    "test_verify_attention.py",
]

collect_ignore = [] if find_spec("torch") and find_spec("triton") else NEED_TORCH

if not collect_ignore:
    import torch

    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"
        collect_ignore.append("test_on_gpu.py")
