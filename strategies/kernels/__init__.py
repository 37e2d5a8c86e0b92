"""The arithmetic under the indicators: a reference, its compiled twins, and the door to both."""

from strategies.kernels.cache import watch

watch()  # numba reads where to keep what it compiles when it is imported, whoever imports it
