"""The op `device-literals`: a file takes the machine's device instead of CUDA."""
