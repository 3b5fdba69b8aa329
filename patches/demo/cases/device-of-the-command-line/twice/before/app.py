def main(arguments):
    synth = Synth(device="cuda")
    return synth or Synth(device='cuda')
