"""Which distribution has a module, where their names differ; pure.

Source: the tables of contents of the newest wheel of each on PyPI, read on 2026-11-23. openai-whisper,
llama-cpp-python and dora-search have sdists alone, and setuptools has pkg_resources up to 81.0.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from packaging.utils import NormalizedName, canonicalize_name

_KNOWN_AS: Mapping[str, str] = {
    "Crypto": "pycryptodome",
    "IPython": "ipython",
    "MeCab": "mecab-python3",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "attr": "attrs",
    "audiotools": "descript-audiotools",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dac": "descript-audio-codec",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dora": "dora-search",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "ffmpeg": "ffmpeg-python",
    "fitz": "pymupdf",
    "git": "gitpython",
    "google.protobuf": "protobuf",
    "hydra": "hydra-core",
    "imwatermark": "invisible-watermark",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "llama_cpp": "llama-cpp-python",
    "magic": "python-magic",
    "multipart": "python-multipart",
    "open_clip": "open-clip-torch",
    "parselmouth": "praat-parselmouth",
    "patchmatch": "pypatchmatch",
    "pkg_resources": "setuptools",
    "pywt": "pywavelets",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "socks": "pysocks",
    "socketio": "python-socketio",
    "st_keyup": "streamlit-keyup",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "whisper": "openai-whisper",
    "win32api": "pywin32",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}


def distribution_of(module: str) -> NormalizedName:
    """Name the distribution that a module most likely comes from.

    Args:
        module: dotted; what lies below a known one counts, and else its first part.
    """
    for name in (module, module.partition(".")[0]):
        if name in _KNOWN_AS:
            return canonicalize_name(_KNOWN_AS[name])
    return canonicalize_name(module.partition(".")[0])


def brings(name: NormalizedName, module: str) -> bool:
    """Guess whether a distribution has a top-level module: it is called so, or is known to."""
    return name in {distribution_of(module), canonicalize_name(module)}
