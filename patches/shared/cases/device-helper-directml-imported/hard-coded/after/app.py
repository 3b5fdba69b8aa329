"""Speaks."""
import torch_directml

import torch

model = torch.nn.Linear(1, 1).to("privateuseone:0")
