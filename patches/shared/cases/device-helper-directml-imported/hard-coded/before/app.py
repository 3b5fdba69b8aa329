"""Speaks."""

import torch

model = torch.nn.Linear(1, 1).to("privateuseone:0")
