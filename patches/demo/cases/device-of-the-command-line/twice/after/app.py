def main(arguments):
    synth = Synth(arguments.device)
    return synth or Synth(arguments.device)
