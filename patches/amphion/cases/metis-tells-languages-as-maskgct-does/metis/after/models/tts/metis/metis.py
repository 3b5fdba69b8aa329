import os

import py3langid as langid


def language(text):
    return langid.classify(text)[0]
