import os

import langid


def language(text):
    return langid.classify(text)[0]
