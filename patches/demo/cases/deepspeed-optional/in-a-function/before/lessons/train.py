def train(config):
    import deepspeed

    return deepspeed.initialize(config=config)
