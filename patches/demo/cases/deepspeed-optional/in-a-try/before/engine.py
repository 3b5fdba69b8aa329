try:
    import deepspeed
except ImportError:
    deepspeed = None
