"""What `compute` computes: for each kernel, by name, the cases that it consists of, most telling first.

Kinds, types of numbers and sizes are those that the models of the catalogue's apps use, as
`benchmarks/operation_kinds.py` reads them.
"""

from . import convolutions, elements, indexing, matrices, normalizations, products, random_numbers, sequences, spectra
from .case import Case

KERNELS: "dict[str, tuple[Case, ...]]" = {
    **products.KERNELS,
    **spectra.KERNELS,
    **convolutions.KERNELS,
    **sequences.KERNELS,
    **normalizations.KERNELS,
    **elements.KERNELS,
    **indexing.KERNELS,
    **random_numbers.KERNELS,
    **matrices.KERNELS,
}
