"""Stands in for torch on the simulated driver: each operation launches one kernel of 10 µs."""

import contextlib
import ctypes
import os

__version__ = "stand-in"
PTX = b".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry work_10us() { ret; }\n\0"
# How many kernels were launched.
launched = 0


class _Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context, module, self.function = (ctypes.c_void_p() for _ in range(3))
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)
        self("cuModuleLoadData", ctypes.byref(module), PTX)
        self("cuModuleGetFunction", ctypes.byref(self.function), module, b"work_10us")

    def __call__(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: {code}")


_driver = None


def _call(name, *arguments):
    global _driver
    _driver = _driver or _Driver()
    _driver(name, *arguments)


def _launch():
    global launched
    launched += 1
    _call("cuCtxGetDevice", ctypes.byref(ctypes.c_int()))
    _driver("cuLaunchKernel", _driver.function, *[1] * 6, 0, None, None, None)


class _Tensor:
    def __getattr__(self, _name):
        return self._operation

    def _operation(self, *_arguments, **_options):
        _launch()
        return self

    __matmul__ = __mul__ = __add__ = _operation


def zeros(*_size, device="cpu"):
    if device == "cuda":
        _launch()
    return _Tensor()


randn = zeros


class version:
    cuda = "stand-in"


class cuda:
    class CUDAGraph:
        def replay(self):
            _launch()

    @staticmethod
    def is_available():
        return "BESIDE_TORCH_NO_DEVICE" not in os.environ

    @staticmethod
    def get_device_name(_device):
        return "simulated"

    @staticmethod
    def synchronize():
        _call("cuCtxSynchronize")

    @staticmethod
    def graph(_graph):
        return contextlib.nullcontext()
