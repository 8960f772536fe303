"""What our kernels need of Numba and numba-cuda does not change how other code compiles."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOREIGN = """
import hashlib, json, re
import numba, numpy as np
def on_cpu(x, y):
    total = 0.0
    for i in numba.prange(len(x)):
        total += np.sqrt(x[i]) / y[-1]
    return total
def code_of(**options):
    compiled = numba.njit(**options)(on_cpu)
    compiled(np.ones(9), np.ones(9))
    (text,) = compiled.inspect_llvm().values()
    # Numba counts what it compiles, in names and so in the lengths of names, and writes addresses.
    return re.sub(r"on_cpuB\\d+v\\d+|_\\w*parfor\\w*|\\[\\d+ x i8\\]|\\b\\d{6,}\\b", "", text)
def library_and_folder():
    codegen = numba.core.registry.cpu_target.target_context.codegen()
    return [codegen._library_class.__name__, numba.config.CACHE_DIR, hasattr(np, "row_stack")]
"""
ON_CPU = (
    FOREIGN
    + """
before = [code_of(), code_of(parallel=True), library_and_folder()]
from roadworthy.kernels import entry, rule
from roadworthy.kernels.threads import prange
@rule
def half(x): return x / np.float32(2.0)
def parallel(x):
    for i in prange(len(x)):
        x[i] = half(x[i])
parallel.__module__ = "roadworthy.sim"
x = np.ones(4, np.float32)
entry(parallel=True)(parallel)(x)
after = [code_of(), code_of(parallel=True), library_and_folder()]
print(json.dumps({"ours": x.tolist(), "same": [a == b for a, b in zip(before, after)]}))
"""
)


def run(code: str, folder: Path, **environment: str) -> str:
    file = folder / "probe.py"
    file.write_text(code)
    done = subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "ROADWORTHY_CACHE": str(folder / "cache"), **environment},
        capture_output=True,
        text=True,
    )
    if re.search(r"libnvvm|libnvrtc|No supported NVVM", done.stderr):
        pytest.skip("CUDA's compiler is not installed")
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


def test_a_foreign_function_compiles_to_the_same_code_before_and_after_ours(tmp_path: Path) -> None:
    found = json.loads(run(ON_CPU, tmp_path))
    assert found == {"ours": [0.5] * 4, "same": [True, True, True]}


ON_GPU = (
    FOREIGN
    + """
from numba import float32, int64
def plain(x, k):
    x[k] = x[k - 3] + np.float32(1.0)
def rounded(x, k):
    x[k] = np.floor(x[k])
plain.__module__ = rounded.__module__ = "roadworthy.sim"
ARGUMENTS = (float32[::1], int64)
def foreign():
    from numba import cuda
    # Whether a negative index is understood shows in the code; so does "optsize", and what NumPy functions are known.
    code, _ = cuda.compile_ptx(plain, ARGUMENTS, cc=(9, 0))
    try:
        cuda.compile_ptx(rounded, ARGUMENTS, cc=(9, 0))
        knows = True
    except Exception as error:
        knows = type(error).__name__
    return [re.sub(r"v\\d+|\\d{6,}", "", code), knows, library_and_folder()]
before = foreign()
from roadworthy.kernels import cuda_kernel
from roadworthy.kernels.cuda import compile_to_ptx
ours = [compile_to_ptx(cuda_kernel(small=True)(function), ARGUMENTS, (9, 0)) for function in (plain, rounded)]
after = foreign()
# Adding the length where an index is negative takes a comparison and a selection.
def selections(code): return len(re.findall(r"setp|selp|shr.s64|and.b64", code))
print(json.dumps({
    "same": [a == b for a, b in zip(before, after)],
    "shorter": selections(ours[0]) < selections(before[0]),
    "rounds": "cvt.rmi" in ours[1],
}))
"""
)


def test_a_foreign_cuda_kernel_compiles_to_the_same_code_before_and_after_ours(tmp_path: Path) -> None:
    found = json.loads(run(ON_GPU, tmp_path, NUMBA_ENABLE_CUDASIM="0"))
    assert found == {"same": [True, True, True], "shorter": True, "rounds": True}
