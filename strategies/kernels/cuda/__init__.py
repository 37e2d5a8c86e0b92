"""The kernels on a CUDA device, and what is known about them on a computer without one."""
