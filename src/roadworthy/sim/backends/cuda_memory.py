"""Memory on a GPU: NumPy arrays uploaded as torch tensors, which Numba's kernels use without a copy."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.errors import DeviceError
from roadworthy.kernels.cuda import IS_SIMULATED, cuda

Part = TypeVar("Part", bound=tuple[Any, ...])
# Types that torch does not fully support are stored as the signed type of the same size.
_SIGNED = {np.dtype(np.uint16): np.int16, np.dtype(np.uint64): np.int64}


def ready_device(name: str) -> torch.device:
    """Return the device of this name if kernels can run there; else raise an error that says what is missing."""
    if IS_SIMULATED:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        missing = (
            "torch finds no GPU: check that there is one and that its driver is installed (`nvidia-smi` shows both)"
        )
        if torch.version.cuda is None:
            missing = "this torch is built without CUDA: install a CUDA build of it and the extra 'cuda'"
        raise DeviceError(f"device {name!r} was requested, but {missing}; or use the device 'cpu'")
    count, number = torch.cuda.device_count(), name.partition(":")[2] or str(torch.cuda.current_device())
    if not number.isdecimal() or int(number) >= count:
        raise DeviceError(f"device {name!r} was requested, but there are {count}: cuda:0 to cuda:{count - 1}")
    if not cuda.is_available():
        raise DeviceError(
            f"device {name!r} was requested, but Numba can't use it: {cuda.cuda_error() or 'no CUDA libraries found'}; "
            "install the extra 'cuda' (pip install 'roadworthy[cuda]'), or use the device 'cpu'"
        )
    cuda.select_device(int(number))
    return torch.device("cuda", int(number))


def processor_count(device: torch.device) -> int:
    """Return how many multiprocessors a GPU has; 1 in the CUDA simulator."""
    return 1 if IS_SIMULATED else int(torch.cuda.get_device_properties(device).multi_processor_count)


def require_memory(device: torch.device, needed: int, remedy: str) -> None:
    """Raise an error if a device has less free memory than needed."""
    if IS_SIMULATED:
        return
    free, total = torch.cuda.mem_get_info(device)
    if needed > free:
        raise DeviceError(
            f"{needed / 2**30:.1f} GiB of memory are needed on {device}, but {free / 2**30:.1f} of its "
            f"{total / 2**30:.1f} GiB are free; {remedy}"
        )


def upload(arrays: Part, device: torch.device) -> Part:
    """Return the same tuple with tensors on a device."""
    return cast(Part, type(arrays)._make(_tensor(array, device) for array in arrays))  # type: ignore[attr-defined]


def kernel_views(tensors: Part, like: Part) -> Part:
    """Return the same tuple with arrays for kernels; `like` has the types."""
    pairs = zip(tensors, like, strict=True)
    return cast(Part, type(tensors)._make(kernel_view(tensor, array.dtype) for tensor, array in pairs))  # type: ignore[attr-defined]


def kernel_view(tensor: torch.Tensor, dtype: np.dtype[Any]) -> Any:
    """Return a tensor's memory as an array for kernels (of NumPy in the CUDA simulator)."""
    if IS_SIMULATED:
        return tensor.numpy().view(dtype)
    return cuda.as_cuda_array(_KernelView(tensor, dtype))


class _KernelView:
    """A tensor's memory, offered as another type of the same size."""

    def __init__(self, tensor: torch.Tensor, dtype: np.dtype[Any]) -> None:
        self._tensor = tensor  # kept alive
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, "typestr": dtype.str}


def _tensor(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    """Return a copy on the device with the memory layout of the array."""
    if not array.flags.c_contiguous:  # entry-major, see road_points.entry_major
        base = cast(NDArray[Any], array.base)
        return _tensor(base, device)[:, :, : array.shape[1]].transpose(1, 2)
    signed = array.view(_SIGNED.get(array.dtype, array.dtype))
    return torch.from_numpy(signed).to(device, copy=True)
