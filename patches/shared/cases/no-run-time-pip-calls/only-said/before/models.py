raise ImportError("install it with: pip install timm")
