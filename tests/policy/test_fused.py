"""The encoder's kernels for a GPU, in Triton's interpreter: they do what torch's operations do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]

PLAYED = """
import json
import torch
from roadworthy.policy import encoder, fused
from roadworthy.sim.config import ObserveConfig
from tests.policy.networks import random_observations, small_policy
fused._FORWARD = fused._BACKWARD = (3, 1)  # programs go through several rows
fused._CHUNK = 16  # and through entries in several goes
observe = ObserveConfig(partners=3, lanes=21, edges=4, lights=1)
policy = small_policy("mlp", encoder=16, encoder_layers=2, observe=observe)

def played(function, is_fused=True):
    encoder._fits_fused = lambda observations: is_fused  # in float32: the interpreter supports no other
    return function()

"""

BOTH = """
rows, active = random_observations(policy, 5, 2), torch.tensor([[1, 1], [0, 0], [0, 0], [1, 1], [1, 0]]).bool()
rows[~active] = torch.nan
def outputs():
    policy.zero_grad()
    said = policy.encoder(rows, active)
    (said * torch.linspace(-1.0, 1.0, said.numel()).view_as(said)).sum().backward()
    return [said.detach(), *(p.grad for p in policy.encoder.parameters())]
def gap(one, other):
    return float((one - other).norm() / other.norm())
together, apart = played(outputs), played(outputs, False)
lacking = torch.zeros(0, policy.layout.size)
def of_none():
    said = policy.encoder(lacking, torch.zeros(0, dtype=torch.bool))
    said.sum().backward()
    return list(said.shape)
print(json.dumps({"gaps": list(map(gap, together, apart)), "of none": played(of_none)}))
"""

COMPILED = """
rows = random_observations(policy, 7)
active, memory = torch.ones(7, dtype=torch.bool), policy.memory(7)
never = torch.zeros(7, 1, dtype=torch.bool)
step = torch.compile(policy.step, backend="aot_eager", fullgraph=True, dynamic=False)
sequence = torch.compile(policy.sequence, backend="aot_eager", fullgraph=True, dynamic=False)
stepped = played(lambda: step(rows, active, memory).logits)
played(lambda: sequence(rows[:, None], active[:, None], never, memory).values.sum().backward())
gap = (stepped - played(lambda: policy.step(rows, active, memory).logits, False)).abs().max()
learned = [bool(p.grad.isfinite().all() and p.grad.any()) for p in policy.encoder.entries.parameters()]
print(json.dumps({"gap": float(gap), "learned": all(learned)}))
"""


def played(code: str) -> dict[str, Any]:
    """What a script says in Triton's interpreter, which must be enabled before anything imports it."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", PLAYED + code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


@pytest.mark.row("POLICY-1")
def test_the_fused_kernel_equals_separate_operations() -> None:
    answer = played(BOTH)
    assert len(answer["gaps"]) > 10
    assert all(gap < 1e-5 for gap in answer["gaps"])  # NaN is not
    assert answer["of none"] == [0, 16]


@pytest.mark.row("POLICY-4")
def test_the_kernels_are_part_of_a_compiled_step() -> None:
    answer = played(COMPILED)
    assert answer["gap"] < 1e-5
    assert answer["learned"]


@pytest.mark.row("POLICY-6")
@pytest.mark.parametrize("is_half", [True, False], ids=["bfloat16", "float32"])
def test_the_kernels_compile_for_a_gpu_that_is_not_there(
    is_half: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # it warns where nobody has said so
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from roadworthy.policy import fused

    sizes = fused._sizes(torch.empty(64, 7), 100, is_half)
    number = "*bf16" if is_half else "*fp32"
    special = {"seen": number, "largest_out": number, "gradient": number, "counts": "*i32"}
    special |= {"winners": "*u8", "winners_out": "*u8", "rows": "i32", "row_stride": "i32", "start": "i32"}
    for kernel, constants in ((fused._forward, {**sizes, "CHUNK": 64}), (fused._backward, sizes)):
        signature = {
            name: "constexpr" if name in constants else special.get(name, "*fp32") for name in kernel.arg_names
        }
        source = ASTSource(kernel, signature=signature, constexprs=constants)
        made = compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
        assert len(made.asm["cubin"]) > 1000
        assert ("mma" in made.asm["ptx"]) == is_half  # tensor cores multiply what is rounded, and only that
