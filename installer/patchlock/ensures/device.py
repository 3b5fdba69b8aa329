class WithoutCuda:
    def __init__(self, device): pass
